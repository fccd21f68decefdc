import { draw, type Calculation } from './calculation.ts';
import { assistant, num, say, turns, user } from './chat.ts';

/** What is measured, cut, drilled and lifted. */
export const building: Record<string, Calculation> = {
  diagonal(random) {
    const [a, b] = [draw(random, 300, 2400, 20), draw(random, 200, 1800, 20)];
    const d = Math.hypot(a, b);
    const off = draw(random, 3, 12);
    return [
      user(`What must the diagonal of a frame of ${num(a)} by ${num(b)} mm be?`),
      assistant(
        `${num(d, 0)} mm. Both diagonals have to come out the same.`,
        `${num(a)} squared is ${num(a * a)} and ${num(b)} squared is ${num(b * b)}. Their sum is ${num(a * a + b * b)}, and its root is about ${num(d, 1)}.`,
      ),
      user(`I measure ${num(d + off, 0)}.`),
      assistant(
        `Then that diagonal is ${off} mm too long. Squeeze those corners together until it reads ${num(d, 0)}; the other one grows meanwhile.`,
      ),
    ];
  },

  slope(random) {
    const [fall, length] = [random.pick([1, 1.5, 2, 2.5, 3]), draw(random, 2, 18, 0.5)];
    const drop = fall * length;
    return turns(
      `A ${random.pick(['terrace', 'gutter', 'drain', 'path'])} should fall ${num(fall)} percent over ${num(length)} metres. How much is that?`,
      `${num(fall)} percent means ${num(fall)} centimetres on each metre: ${num(drop)} centimetres over ${num(length)} metres.`,
      'How do I mark it?',
      `Stretch a level string, then measure ${num(drop)} centimetres down at the far end. ${say(random, 'Halfway it must be half of that.', 'A hose filled with water gives the level.', 'Check it again after settling.')}`,
    );
  },

  stairs(random) {
    const steps = draw(random, 5, 17);
    const riser = draw(random, 165, 195, 2.5);
    const height = steps * riser;
    return [
      user(`How many steps do I need for a height of ${num(height / 10, 1)} centimetres?`),
      assistant(
        `${steps} steps of ${num(riser, 1)} mm each.`,
        `A comfortable step is near 180 mm. ${num(height, 1)} ÷ 180 is ${num(height / 180, 1)}, so ${steps} whole steps, and ${num(height, 1)} ÷ ${steps} is ${num(riser, 1)}.`,
      ),
      user('And how deep should the treads be?'),
      assistant(
        `Twice the rise plus the tread should be about 630 mm. With ${num(riser, 1)} mm that leaves ${num(630 - 2 * riser, 0)} mm.`,
      ),
    ];
  },

  rows(random) {
    const [row, spacing, rows] = [
      draw(random, 1.5, 6, 0.5),
      random.pick([4, 5, 10, 15, 20, 25, 30, 40]),
      draw(random, 2, 8),
    ];
    const plants = Math.floor((row * 100) / spacing) + 1;
    return turns(
      `How many ${random.pick(['onions', 'lettuces', 'leeks', 'beans', 'cabbages', 'beets'])} fit in a row of ${num(row)} metres, ${spacing} centimetres apart?`,
      `${num(row * 100)} ÷ ${spacing} is ${num((row * 100) / spacing, 1)}, and one stands at the beginning: ${plants}.`,
      `I have ${rows} rows.`,
      `Then you need ${plants * rows}. ${say(random, 'Raise a few more, since some always fail.', 'Sow in two goes, three weeks apart, and you can pick for longer.')}`,
    );
  },

  soil(random) {
    const [length, width, height] = [
      draw(random, 80, 240, 10),
      draw(random, 60, 120, 10),
      draw(random, 20, 80, 5),
    ];
    const litres = (length * width * height) / 1000;
    return turns(
      `How much earth goes into a raised bed of ${length} by ${width} by ${height} centimetres?`,
      `${length} × ${width} × ${height} are ${num(length * width * height)} cubic centimetres, which is ${num(litres, 0)} litres.`,
      'How many bags of 40 litres would that be?',
      `${Math.ceil(litres / 40)}. Fill the lower half with branches and leaves and you get by with ${Math.ceil(litres / 80)}.`,
    );
  },

  cutting(random) {
    const [board, piece, kerf] = [
      random.pick([2000, 2400, 2500, 3000, 4000]),
      draw(random, 180, 620, 10),
      random.pick([2, 3]),
    ];
    const count = Math.floor((board + kerf) / (piece + kerf));
    const rest = board - count * piece - (count - 1) * kerf;
    const wanted = count * draw(random, 2, 5) + draw(random, 1, count - 1);
    return turns(
      `How many pieces of ${piece} mm can I saw from a board of ${num(board)} mm? The saw takes ${kerf} mm.`,
      `${count}. Each takes ${piece + kerf} mm with its cut, the last one needs none, and ${rest} mm remain.`,
      `I need ${wanted} of them.`,
      `${wanted} ÷ ${count} is ${num(wanted / count, 2)}, so ${Math.ceil(wanted / count)} boards. ${say(random, 'Saw the ones with knots last.', 'Clamp a stop to the bench so that all come out equal.', 'Check the first piece before you cut the rest.')}`,
    );
  },

  drilling(random) {
    const [name, speed] = random.pick([
      ['mild steel', 25],
      ['aluminium', 60],
      ['stainless steel', 12],
      ['brass', 50],
      ['hardwood', 70],
    ] as const);
    const diameter = draw(random, 3, 20);
    const rpm = (speed * 1000) / (Math.PI * diameter);
    return turns(
      `Which speed for a ${diameter} mm bit in ${name}?`,
      `The edge may move at some ${speed} metres a minute in ${name}. Divided by the way round the bit, ${num(Math.PI * diameter, 1)} mm, that gives ${num(Math.round(rpm / 10) * 10)} turns a minute.`,
      `And with ${diameter * 2} mm?`,
      `Twice the size, half the speed: about ${num(Math.round(rpm / 20) * 10)}.`,
    );
  },

  torque(random) {
    const [torque, arm] = [draw(random, 10, 120, 5), draw(random, 15, 60, 5)];
    return turns(
      `A nut wants ${torque} newton metres. How hard do I pull on a spanner of ${arm} centimetres?`,
      `Force is torque divided by length: ${torque} ÷ ${num(arm / 100, 2)} makes ${num(torque / (arm / 100), 0)} newtons, like lifting ${num(torque / (arm / 100) / 9.81, 1)} kilos.`,
      'What if I put a pipe on it that doubles the length?',
      `Then half the pull does it, ${num(torque / (arm / 50), 0)} newtons at ${arm * 2} centimetres. Be careful: that is how bolts get torn off.`,
    );
  },

  hoist(random) {
    const [load, parts, lift] = [draw(random, 40, 400, 10), draw(random, 2, 6), draw(random, 1.5, 5, 0.5)];
    return turns(
      `I hoist ${load} kilos with a tackle that has ${parts} ropes at the load. How heavy does it feel?`,
      `Each rope carries a part: ${load} ÷ ${parts} is ${num(load / parts, 1)} kilos. With friction reckon on ${num((load / parts) * 1.2, 0)}.`,
      `How much rope runs through to lift it ${num(lift)} metres?`,
      `${parts} times as much, ${num(parts * lift)} metres. What you save in force you pay in length.`,
    );
  },

  bar(random) {
    const [name, density] = random.pick([
      ['steel', 7.85],
      ['aluminium', 2.7],
      ['brass', 8.5],
      ['copper', 8.96],
    ] as const);
    const [width, height, length] = [draw(random, 10, 80, 5), draw(random, 3, 20), draw(random, 0.5, 6, 0.5)];
    const weight = (width * height * length * density) / 1000;
    return [
      user(`What does a flat ${name} bar of ${width} × ${height} mm and ${num(length)} metres weigh?`),
      assistant(
        `About ${num(weight, 2)} kilos.`,
        `The section is ${width * height} square millimetres, so each metre holds ${width * height} cubic centimetres. At ${density} grams each that is ${num((width * height * density) / 1000, 3)} kilos a metre, times ${num(length)}.`,
      ),
      user('Two of them?'),
      assistant(
        `${num(weight * 2, 2)} kilos. ${weight * 2 > 20 ? 'Ask somebody to take the other end.' : 'You can carry that alone.'}`,
      ),
    ];
  },

  plank(random) {
    const [name, density] = random.pick([
      ['oak', 700],
      ['pine', 510],
      ['beech', 720],
      ['spruce', 450],
      ['ash', 690],
      ['birch plywood', 680],
    ] as const);
    const [length, width, thickness] = [
      draw(random, 80, 300, 10),
      draw(random, 15, 60, 5),
      random.pick([18, 20, 24, 27, 30, 40]),
    ];
    const weight = (length / 100) * (width / 100) * (thickness / 1000) * density;
    return turns(
      `How heavy is a board of ${name}, ${length} by ${width} centimetres and ${thickness} mm thick?`,
      `Its volume is ${num((length * width * thickness) / 10000, 1)} litres. Dry ${name} weighs about ${density} grams a litre, so ${num(weight, 1)} kilos.`,
      say(random, 'Mine feels heavier.', 'Does that change when it is wet?', 'And fresh from the sawmill?'),
      `Moist wood can weigh half as much again, here up to ${num(weight * 1.5, 1)} kilos. ${say(random, 'Let it dry under cover.', 'That tells you it is not ready yet.')}`,
    );
  },

  clock(random) {
    const [hour, minute, wait] = [draw(random, 7, 19), draw(random, 0, 55, 5), draw(random, 25, 480, 5)];
    const end = hour * 60 + minute + wait;
    const time = (minutes: number) =>
      `${Math.floor(minutes / 60) % 24}:${String(minutes % 60).padStart(2, '0')}`;
    const what = random.pick(['glue', 'filler', 'first coat', 'sealant', 'dough', 'plaster']);
    const span = wait >= 60 ? `${Math.floor(wait / 60)} h ${wait % 60} min` : `${wait} minutes`;
    return turns(
      `It is ${time(hour * 60 + minute)} and the ${what} needs ${span}. When can I go on?`,
      `At ${time(end)}${end >= 24 * 60 ? ', so leave it until tomorrow' : ''}.`,
      `I was ${draw(random, 10, 20, 5)} minutes late with it.`,
      `A little longer never hurts ${what === 'dough' ? 'much' : 'it'}. Too early does. Look again after ${time(end + 20)}.`,
    );
  },
};
