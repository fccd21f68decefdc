/**
 * A way out is one sentence for a terminal and for the window. What only a command line has stands in brackets, and is
 * called there as where Tessera is installed: `Resume it first (tessera resume 7).`, `(in Columns, or with --column)`.
 */
const onlyTyped = / \((?:tessera |--|TESSERA_)[^)]*\)|,? or (?:with )?--[^)]*(?=\))/g;

/** As the window says it: its own buttons stand beside the words. */
export const forWindow = (text: string) => text.replaceAll(onlyTyped, '');

/** As a terminal says it; `program` is how Tessera is called there. */
export const forTerminal = (text: string, program: string) => text.replaceAll('(tessera ', `(${program} `);
