import { onBeforeUnmount, onMounted, reactive, type Ref } from 'vue';

/** An element's inner size in CSS pixels, kept as it changes. */
export function useSize(element: Ref<HTMLElement | undefined>): { width: number; height: number } {
  const size = reactive({ width: 0, height: 0 });
  let observer: ResizeObserver | undefined;
  onMounted(() => {
    if (element.value === undefined) return;
    observer = new ResizeObserver(([entry]) => {
      if (entry === undefined) return;
      size.width = entry.contentRect.width;
      size.height = entry.contentRect.height;
    });
    observer.observe(element.value);
  });
  onBeforeUnmount(() => observer?.disconnect());
  return size;
}
