/** Chart colours of compared runs, in the order that they were chosen. */
export const runColors = ['c2', 'c1', 'c4', 'c3', 'c5', 'c7', 'c6', 'c8'];
