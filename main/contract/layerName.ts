/** A kind of layer as people read it, wherever they do: `linear attention` for `linear_attention`. */
export function layerName(layerKind: string): string {
  return layerKind.replaceAll('_', ' ');
}
