import { createRouter, createWebHashHistory, type RouteRecordRaw, type Router } from 'vue-router';

const lastRouteKey = 'tessera.lastRoute';

// Each view is a chunk of its own: the first paint loads only the one that is shown.
const routes: RouteRecordRaw[] = [
  { path: '/first', name: 'first', component: () => import('./views/first/FirstView.vue') },
  {
    path: '/datasets/:id?/:tab?',
    name: 'datasets',
    component: () => import('./views/datasets/DatasetsView.vue'),
  },
  { path: '/packing', name: 'packing', component: () => import('./views/packing/PackingView.vue') },
  { path: '/train', name: 'train', component: () => import('./views/train/TrainView.vue') },
  { path: '/runs', name: 'runs', component: () => import('./views/runs/RunsView.vue') },
  {
    path: '/runs/:id/:tab?',
    name: 'run',
    component: () => import('./views/run/RunView.vue'),
    meta: { rail: 'runs' },
  },
  { path: '/compare', name: 'compare', component: () => import('./views/compare/CompareView.vue') },
  { path: '/machine', name: 'machine', component: () => import('./views/machine/MachineView.vue') },
  {
    path: '/machine/ladder',
    name: 'ladder',
    component: () => import('./views/machine/LadderView.vue'),
    meta: { rail: 'machine' },
  },
  { path: '/settings', name: 'settings', component: () => import('./views/settings/SettingsView.vue') },
];

/** Routes say everything that a view shows, so that the last one brings the window back as it was. */
export function createAppRouter(): Router {
  const router = createRouter({ history: createWebHashHistory(), routes });
  router.addRoute({ path: '/:rest(.*)*', redirect: () => localStorage.getItem(lastRouteKey) ?? '/first' });
  router.afterEach((to) => {
    localStorage.setItem(lastRouteKey, to.fullPath);
  });
  return router;
}
