/** The system's own configuration, whatever says where it is. */
export function systemConfig(environment: NodeJS.ProcessEnv, own: string): string {
  const { FONTCONFIG_FILE: file, FONTCONFIG_PATH: folder } = environment;
  if (file !== undefined && file !== '' && file !== own) return file;
  return folder === undefined || folder === '' ? '/etc/fonts/fonts.conf' : `${folder}/fonts.conf`;
}

/** The system's fonts, and one more folder of them with a cache of its own. */
export function fontsConfig(system: string, folder: string, cache: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">${escape(system)}</include>
  <dir>${escape(folder)}</dir>
  <cachedir>${escape(cache)}</cachedir>
</fontconfig>
`;
}

const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
