import { contextBridge, ipcRenderer, webUtils } from 'electron';
import type { TesseraBridge } from './contract/bridge.ts';

// The whole of what a page can reach. Frames are the contract's (main/contract/port.ts); main checks each one and who
// sent it, so that this bridge needs no list of channels.
const bridge: TesseraBridge = {
  send: (frame) => {
    ipcRenderer.send('tessera:frame', frame);
  },
  onFrame: (listener) => {
    ipcRenderer.on('tessera:frame', (_event, frame: unknown) => {
      listener(frame);
    });
  },
  pathForFile: (file) => webUtils.getPathForFile(file),
};

contextBridge.exposeInMainWorld('tessera', bridge);
