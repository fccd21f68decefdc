/**
 * What a reader that went away, or a full disk, does to what is written. Nobody has to read to the end (`| head`): that
 * ends the command where it prints its answer, and costs it only words where it tells how far it is.
 */
export function watchOutput(): void {
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit();
    process.stderr.write(`tessera: the answer cannot be written: ${error.message}\n`);
    process.exit(1);
  });
}

const bold = '\u001b[1m';
const notBold = '\u001b[22m';

/** Bold on a terminal. */
export function emphasise(text: string): string {
  return process.stdout.isTTY && !process.env.NO_COLOR ? `${bold}${text}${notBold}` : text;
}

/** Control characters of what others wrote (data, names, errors) made visible, so that a terminal does not obey them. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, (character, at: number) => {
    const isOurs =
      character === '\n' || character === '\t' || [bold, notBold].some((code) => text.startsWith(code, at));
    if (isOurs) return character;
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? '\u2421' : '\ufffd';
  });
}
