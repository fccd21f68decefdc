import { z } from 'zod';
import { errorSchema } from './errors.ts';

/**
 * Both directions of the wire. `id` is chosen by the client and unique on its port. A batch of events is answered
 * by `ack` before the next is sent: a reader that stops reading stops the flow, whatever carries the frames.
 */
const id = z.int().nonnegative();
export const clientFrame = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), id, channel: z.string(), args: z.unknown() }),
  z.object({ kind: z.literal('cancel'), id }),
  z.object({ kind: z.literal('ack'), id }),
]);
export const serverFrame = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('result'), id, value: z.unknown() }),
  z.object({ kind: z.literal('error'), id, error: errorSchema }),
  z.object({ kind: z.literal('progress'), id, value: z.unknown() }),
  z.object({
    kind: z.literal('events'),
    id,
    events: z.array(z.unknown()),
    numDropped: z.int().nonnegative(),
  }),
]);
export type ClientFrame = z.infer<typeof clientFrame>;
export type ServerFrame = z.infer<typeof serverFrame>;

/** One side of a two-way link that carries structured-cloneable frames in order. */
export interface Port {
  send: (frame: ClientFrame | ServerFrame) => void;
  /** Called once by the owner; frames that arrive earlier wait. */
  start: (onFrame: (frame: unknown) => void, onClose: (reason?: Error) => void) => void;
  close: () => void;
}
