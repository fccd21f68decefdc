import { readFile } from 'node:fs/promises';
import { extname, join, normalize, sep } from 'node:path';
import { protocol } from 'electron';

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
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export function registerAppScheme(): void {
  protocol.registerSchemesAsPrivileged([
    { scheme, privileges: { standard: true, secure: true, supportFetchAPI: true } },
  ]);
}

/** Serves the built renderer and nothing else. */
export function setupProtocol(): void {
  const folder = join(import.meta.dirname, '../renderer');
  protocol.handle(scheme, async (request) => {
    const url = new URL(request.url);
    const path = normalize(
      join(folder, decodeURIComponent(url.pathname === '/' ? '/index.html' : url.pathname)),
    );
    const headers = { 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff' };
    if (url.host !== 'app' || !path.startsWith(folder + sep))
      return new Response('', { status: 404, headers });
    try {
      const type = types[extname(path)] ?? 'application/octet-stream';
      return new Response(await readFile(path), { headers: { ...headers, 'Content-Type': type } });
    } catch {
      return new Response('', { status: 404, headers });
    }
  });
}
