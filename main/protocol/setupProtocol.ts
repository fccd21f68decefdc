import { readFile } from 'node:fs/promises';
import { extname, join, normalize, sep } from 'node:path';
import { net, protocol } from 'electron';
import type { AppContext } from '../appContext.ts';
import { developmentServer } from './developmentServer.ts';

const scheme = 'tessera';
export const appOrigin = `${scheme}://app`;

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.woff2': 'font/woff2',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

// No inline script, no eval, nothing from outside. Inline styles stay: the chart and widget libraries set them.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "font-src 'self'",
  "img-src 'self' data: blob:",
  `connect-src 'self'${developmentServer === undefined ? '' : ` ${developmentServer.replace('http', 'ws')}`}`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
const headers = { 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff' };

export function registerAppScheme(): void {
  protocol.registerSchemesAsPrivileged([
    { scheme, privileges: { standard: true, secure: true, supportFetchAPI: true, codeCache: true } },
  ]);
}

/** Serves the built renderer and nothing else; in development, what the server of `npm run dev` makes of its sources. */
export function setupProtocol(context: AppContext): void {
  const folder = join(import.meta.dirname, '../renderer');
  protocol.handle(scheme, async (request) => {
    const url = new URL(request.url);
    const path = decodeURIComponent(url.pathname === '/' ? '/index.html' : url.pathname);
    if (url.host !== 'app') return notFound();
    if (developmentServer !== undefined) return fromServer(developmentServer, url, context);
    const file = normalize(join(folder, path));
    if (!file.startsWith(folder + sep)) return notFound();
    try {
      const content = await readFile(file);
      const body = path === '/index.html' ? withTheme(content.toString(), context) : content;
      const type = types[extname(file)] ?? 'application/octet-stream';
      return new Response(body, { headers: { ...headers, 'Content-Type': type } });
    } catch {
      return notFound();
    }
  });
}

const notFound = () => new Response('', { status: 404, headers });

/** The page knows its theme before its first line of script runs: nothing is painted in another. */
function withTheme(html: string, context: AppContext): string {
  return html.replace('<html ', `<html data-theme-choice="${context.settings.get().theme}" `);
}

async function fromServer(server: string, url: URL, context: AppContext): Promise<Response> {
  const answer = await net.fetch(`${server}${url.pathname}${url.search}`);
  const type = answer.headers.get('Content-Type') ?? 'application/octet-stream';
  const body = type.startsWith('text/html') ? withTheme(await answer.text(), context) : answer.body;
  return new Response(body, { status: answer.status, headers: { ...headers, 'Content-Type': type } });
}
