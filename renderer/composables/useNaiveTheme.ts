import { darkTheme, type GlobalThemeOverrides } from 'naive-ui';
import { computed, shallowRef, watch } from 'vue';
import { useThemeStore } from '../stores/themeStore.ts';

/** naive-ui in the design tokens: it computes with colours, so it needs their values, not their names. */
export function useNaiveTheme() {
  const theme = useThemeStore();
  // The values come from tokens.css as the document shows it: read again after the theme on it has changed.
  const overrides = shallowRef<GlobalThemeOverrides>({});
  watch(
    () => theme.shown,
    () => {
      overrides.value = readOverrides();
    },
    { immediate: true, flush: 'post' },
  );
  return { theme: computed(() => (theme.shown === 'dark' ? darkTheme : null)), overrides };
}

function readOverrides(): GlobalThemeOverrides {
  const styles = getComputedStyle(document.documentElement);
  const token = (name: string) => styles.getPropertyValue(`--${name}`).trim();
  return {
    common: {
      fontFamily: token('font-ui'),
      fontFamilyMono: token('font-mono'),
      fontSize: '12px',
      fontSizeSmall: '12px',
      fontSizeMedium: '12px',
      heightTiny: '20px',
      heightSmall: '24px',
      heightMedium: '24px',
      borderRadius: '4px',
      borderRadiusSmall: '3px',
      primaryColor: token('accent'),
      primaryColorHover: token('accent'),
      primaryColorPressed: token('accent'),
      primaryColorSuppl: token('accent'),
      errorColor: token('bad'),
      warningColor: token('warn'),
      bodyColor: token('bg-1'),
      cardColor: token('bg-1'),
      modalColor: token('pop'),
      popoverColor: token('pop'),
      inputColor: token('well'),
      tableColor: token('bg-1'),
      textColorBase: token('tx-1'),
      textColor1: token('tx-1'),
      textColor2: token('tx-1'),
      textColor3: token('tx-3'),
      placeholderColor: token('tx-3'),
      borderColor: token('line-2'),
      dividerColor: token('line'),
      hoverColor: token('bg-3'),
      boxShadow2: token('shadow-pop'),
    },
    // Focus is an outline, as everywhere; nothing glows.
    Select: {
      peers: {
        InternalSelection: {
          colorActive: token('well'),
          boxShadowFocus: 'none',
          boxShadowActive: 'none',
          borderHover: `1px solid ${token('tx-4')}`,
        },
      },
    },
  };
}
