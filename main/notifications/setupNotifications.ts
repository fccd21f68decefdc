import { Notification } from 'electron';
import type { AppContext } from '../appContext.ts';

/** Placeholder until runs announce themselves. */
export function setupNotifications(_context: AppContext): void {
  void Notification;
}
