import { computed } from 'vue';
import { useRoute, useRouter, type LocationQuery } from 'vue-router';

/** How a view shows things is in its route: the window comes back as it was. Behind another view it stays as it is. */
export function useRouteQuery(view: string) {
  const route = useRoute();
  const router = useRouter();
  const query = computed<LocationQuery>((before = {}) => (route.name === view ? route.query : before));
  function inRoute<T>(
    key: string,
    read: (text: string | undefined) => T,
    write: (value: T) => string | undefined,
  ) {
    return computed<T>({
      get: () => {
        const text = query.value[key];
        return read(typeof text === 'string' ? text : undefined);
      },
      set: (value) => void router.replace({ query: { ...route.query, [key]: write(value) } }),
    });
  }
  return { query, inRoute };
}
