export function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** Four significant digits, thousands grouped. */
export function figure(value: number | undefined, unit = ''): string {
  if (value === undefined) return '–';
  const text = value.toLocaleString(
    'en-US',
    Math.abs(value) >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 },
  );
  return unit === '' ? text : `${text} ${unit}`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

export function change(from: number | undefined, to: number | undefined): string {
  if (from === undefined || to === undefined || from === 0) return '';
  const share = (to - from) / from;
  return `${share <= 0 ? '−' : '+'}${Math.abs(share * 100).toFixed(1)} %`;
}

export function time(ms: number | undefined): string {
  return ms === undefined ? '–' : `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
