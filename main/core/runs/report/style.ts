/** The page's whole style: no font, image or script is fetched. */
export const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #667080; --line: #e3e6ea; --paper: #ffffff; --wash: #f6f7f9;
  --a: #3566c8; --b: #c2571a; --c: #1f8a70; --d: #8a4fbf; --e: #a8841a; --f: #c23b6b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #8d97a5; --line: #2a3038; --paper: #14171b;
  --wash: #1b1f25; --a: #7ba4f5; --b: #f0945c; --c: #5cc9ac; --d: #c398ee; --e: #dcb955; --f: #ef83a8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 14px/1.5 Inter, system-ui, sans-serif;
  font-variant-numeric: tabular-nums; }
main { max-width: 920px; margin: 0 auto; padding: 48px 24px 64px; }
h1 { font-size: 26px; line-height: 1.2; letter-spacing: -0.01em; margin: 0 0 4px; }
h2 { font-size: 13px; font-weight: 600; margin: 40px 0 12px; padding-bottom: 6px; border-bottom: 1px solid var(--line); }
h2.run { font-size: 18px; margin: 28px 0 4px; padding: 0; border: 0; } p { margin: 0 0 8px; } .soft, .empty { color: var(--soft); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(124px, 1fr)); gap: 20px 16px; margin: 20px 0 8px; }
.figures dt { color: var(--soft); font-size: 12px; } .figures dd { margin: 0; font-size: 20px; letter-spacing: -0.01em; }
.figures dd small { display: block; font-size: 12px; color: var(--soft); letter-spacing: 0; }
table { width: 100%; border-collapse: collapse; font-size: 13px; }
th { text-align: left; font-weight: 500; color: var(--soft); } th, td { padding: 5px 16px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } td.number, th.number { text-align: right; padding-right: 0; }
pre { background: var(--wash); border-radius: 6px; padding: 16px; overflow-x: auto; font: 12px/1.6 'JetBrains Mono', ui-monospace, monospace; margin: 0; }
code { font: 12px 'JetBrains Mono', ui-monospace, monospace; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--line); } .curve polygon { fill: currentColor; opacity: 0.18; } .curve polyline { fill: none;
  stroke: currentColor; stroke-width: 1.6; stroke-linejoin: round; } .curve circle { fill: var(--paper); stroke: currentColor; stroke-width: 2; }
.a { color: var(--a); } .b { color: var(--b); } .c { color: var(--c); } .d { color: var(--d); } .e { color: var(--e); } .f { color: var(--f); }
.key { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 12px; } .key i { font-style: normal; }
td { overflow-wrap: anywhere; } .told { margin-bottom: 16px; } .told th { white-space: nowrap; width: 112px; } .told td { white-space: pre-wrap; }
 .bar rect { fill: currentColor; } .bar.soft { color: var(--soft); } svg text.value { fill: var(--ink); font-weight: 600; }
footer { margin-top: 48px; font-size: 12px; color: var(--soft); }
`;
