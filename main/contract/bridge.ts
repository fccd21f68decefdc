/** What the preload script exposes to a page as `window.tessera`: the contract's frames, and the paths of dropped files. */
export interface TesseraBridge {
  send: (frame: unknown) => void;
  onFrame: (listener: (frame: unknown) => void) => void;
  /** The true path of a dropped file; empty for what is none. */
  pathForFile: (file: File) => string;
}
