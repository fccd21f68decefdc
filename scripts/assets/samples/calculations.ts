import type { Calculation } from './calculation.ts';
import { building } from './buildingCalculations.ts';
import { everyday } from './everydayCalculations.ts';
import { workshop } from './workshopCalculations.ts';

/** Each topic once, in the order in which its chats are drawn. */
export const calculations: Record<string, Calculation> = { ...workshop, ...building, ...everyday };
