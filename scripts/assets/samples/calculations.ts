import type { Random } from '../../../main/core/random.ts';
import { assistant, num, say, turns, user, type Message } from './chat.ts';

/** Makes one chat about a sum that comes up in a workshop; its numbers are drawn, its answers computed. */
export type Calculation = (random: Random) => Message[];

/** A multiple of `step` from `from` to `to`. */
function draw(random: Random, from: number, to: number, step = 1): number {
  return from + step * random.below(Math.round((to - from) / step) + 1);
}

export const calculations: Record<string, Calculation> = {
  paint(random) {
    const [length, width, height] = [
      draw(random, 3, 7, 0.5),
      draw(random, 2.5, 5, 0.5),
      draw(random, 2.3, 2.9, 0.1),
    ];
    const coverage = draw(random, 7, 10);
    const openings = draw(random, 3, 8);
    const walls = 2 * (length + width) * height;
    const litres = ((walls - openings) * 2) / coverage;
    return turns(
      say(
        random,
        `How much paint for a room of ${num(length)} by ${num(width)} metres, ${num(height)} high?`,
        `I want to paint the walls of a room, ${num(length)} m long, ${num(width)} m wide and ${num(height)} m high. How much do I buy?`,
      ),
      `The walls measure 2 × (${num(length)} + ${num(width)}) × ${num(height)}, which is ${num(walls)} square metres. How large are the doors and windows, and what does a litre cover?`,
      `About ${openings} square metres of openings, and the tin says ${coverage} square metres a litre. Two coats.`,
      `That leaves ${num(walls - openings)} square metres. Twice that, divided by ${coverage}, gives ${num(litres)} litres. ${say(random, 'Buy a little more for the corners', 'Round up, and keep the rest for repairs', 'Take the next larger tin')}: ${Math.ceil(litres + 0.5)} litres.`,
    );
  },

  tiles(random) {
    const [length, width] = [draw(random, 1.8, 5, 0.2), draw(random, 1.2, 3.6, 0.2)];
    const [side, waste] = [random.pick([15, 20, 30, 40, 60]), random.pick([5, 8, 10])];
    const count = Math.ceil((length * width) / (side / 100) ** 2);
    const more = Math.ceil(count * (1 + waste / 100));
    return turns(
      `My floor is ${num(length)} by ${num(width)} metres and the tiles are ${side} centimetres square. How many do I need?`,
      `The floor has ${num(length * width, 2)} square metres and each tile covers ${num((side / 100) ** 2, 4)}. That makes ${count} tiles without any waste.`,
      say(
        random,
        'And with waste?',
        `What if ${waste} percent break or get cut?`,
        'How many should I order?',
      ),
      `With ${waste} percent for cuts and breakage you come to ${more}. ${say(random, 'Keep the leftovers: the colour of a later batch will differ.', 'Buy them all from one batch.', 'Full boxes can often be returned.')}`,
    );
  },

  fence(random) {
    const [gaps, spacing] = [draw(random, 5, 24), draw(random, 1.5, 2.5, 0.1)];
    const length = gaps * spacing;
    const rails = random.pick([2, 3]);
    return turns(
      `I am putting up ${num(length)} metres of fence with a post every ${num(spacing)} metres. How many posts is that?`,
      `${num(length)} divided by ${num(spacing)} is ${gaps} gaps, and there is one post more than gaps: ${gaps + 1}.`,
      `And the rails? ${rails === 2 ? 'Two' : 'Three'} between each pair of posts.`,
      `${gaps} gaps times ${rails} makes ${gaps * rails} rails of ${num(spacing)} metres, ${num(gaps * rails * spacing)} metres in all.`,
    );
  },

  shelves(random) {
    const [shelves, thickness] = [draw(random, 2, 6), random.pick([16, 18, 19, 22])];
    const gap = draw(random, 240, 360, 5);
    const height = (shelves + 1) * gap + shelves * thickness;
    return turns(
      `How do I space ${shelves} shelves of ${thickness} mm evenly in a case that is ${height} mm high inside?`,
      `Take the shelves away first: ${height} minus ${shelves} × ${thickness} leaves ${height - shelves * thickness} mm. Divided among ${shelves + 1} spaces, each is ${gap} mm.`,
      say(
        random,
        'Where do the lower faces sit?',
        'At what height do I mark the first two?',
        'So where do I draw the lines?',
      ),
      `From the floor the first shelf begins at ${gap} mm and the next at ${2 * gap + thickness}. Each one after that is ${gap + thickness} mm further up. ${say(random, 'Cut a stick of that length and you need no tape.', 'Mark both sides from the same end.')}`,
    );
  },

  inches(random) {
    const [whole, eighths] = [draw(random, 1, 40), draw(random, 1, 7)];
    const inches = whole + eighths / 8;
    const fraction = { 1: '1/8', 2: '1/4', 3: '3/8', 4: '1/2', 5: '5/8', 6: '3/4', 7: '7/8' }[eighths] ?? '';
    const feet = Math.floor(inches / 12);
    return turns(
      say(
        random,
        `What is ${whole} ${fraction} inches in millimetres?`,
        `Please convert ${whole} ${fraction}" to mm.`,
      ),
      `An inch is 25.4 mm, so ${num(inches, 3)} × 25.4 is ${num(inches * 25.4, 1)} mm.`,
      feet > 0 ? 'How much is that in feet?' : 'And in centimetres, rounded?',
      feet > 0
        ? `${feet} ${feet === 1 ? 'foot' : 'feet'} and ${num(inches - feet * 12, 3)} inches.`
        : `About ${num(inches * 2.54, 1)} centimetres, from ${whole} ${fraction}.`,
    );
  },

  oven(random) {
    const fahrenheit = draw(random, 250, 475, 5);
    const celsius = ((fahrenheit - 32) * 5) / 9;
    const fan = Math.round((celsius - 20) / 5) * 5;
    return turns(
      say(
        random,
        `The recipe says ${fahrenheit} degrees Fahrenheit. What is that in Celsius?`,
        `How hot is ${fahrenheit} °F for my oven in °C?`,
      ),
      `Subtract 32 and multiply by five ninths: ${num(celsius, 0)} degrees Celsius. Setting ${Math.round(celsius / 5) * 5} is near enough.`,
      say(random, 'I have a fan oven.', 'And with the fan on?'),
      `With the fan, about 20 degrees less do the same: ${fan} instead of ${Math.round(celsius / 5) * 5}. Look ${draw(random, 5, 10)} minutes earlier than the recipe for ${fahrenheit} °F says.`,
    );
  },

  recipe(random) {
    const [people, guests] = [random.pick([2, 4, 6]), draw(random, 3, 14)];
    const [flour, milk, eggs] = [draw(random, 150, 500, 50), draw(random, 200, 600, 50), draw(random, 2, 4)];
    const factor = (guests === people ? guests + 1 : guests) / people;
    const wanted = factor * people;
    return turns(
      `A recipe for ${people} takes ${flour} g of flour, ${milk} ml of milk and ${eggs} eggs. I have ${wanted} people.`,
      `Multiply everything by ${wanted} ÷ ${people}, which is ${num(factor, 2)}: ${num(flour * factor, 0)} g of flour, ${num(milk * factor, 0)} ml of milk and ${num(eggs * factor, 1)} eggs.`,
      Number.isInteger(eggs * factor) ? 'Should the salt grow as well?' : 'How do I take a part of an egg?',
      Number.isInteger(eggs * factor)
        ? `Yes, by the same ${num(factor, 2)}, though with spices start a bit lower and taste.`
        : `Round it to ${Math.round(eggs * factor)}. In a dough with ${num(flour * factor, 0)} g of flour nobody will notice.`,
    );
  },

  gears(random) {
    const [front, rear] = [random.pick([34, 36, 38, 42, 44, 46, 48, 50]), draw(random, 11, 32)];
    const cadence = draw(random, 60, 95, 5);
    const metres = (front / rear) * 2.1;
    return turns(
      `How far does one turn of the pedals take me with ${front} teeth in front and ${rear} behind?`,
      `The wheel turns ${front} ÷ ${rear}, or ${num(front / rear, 2)} times. With a wheel of 2.1 metres round that is ${num(metres, 2)} metres.`,
      `And how fast am I at ${cadence} turns a minute?`,
      `${cadence} × ${num(metres, 2)} metres × 60 minutes makes ${num((cadence * metres * 60) / 1000, 1)} kilometres an hour.`,
    );
  },

  current(random) {
    const watts = draw(random, 400, 3400, 50);
    const volts = random.pick([230, 230, 120]);
    const fuse = volts === 230 ? 16 : 15;
    const amperes = watts / volts;
    const left = fuse * volts - watts;
    return turns(
      `How many amperes does a ${num(watts)} watt ${random.pick(['heater', 'saw', 'kettle', 'vacuum cleaner', 'compressor'])} draw at ${volts} volts?`,
      `Divide the watts by the volts: ${num(watts)} ÷ ${volts} is ${num(amperes, 1)} amperes.`,
      `Is a circuit of ${fuse} amperes enough?`,
      left > 0
        ? `Yes. It carries ${num(fuse * volts)} watts, so ${num(left)} are left for other things.`
        : `No. It carries only ${num(fuse * volts)} watts, which is ${num(-left)} too few, and the breaker would trip.`,
    );
  },

  running(random) {
    const [watts, hours, cents] = [draw(random, 5, 1500, 5), draw(random, 2, 12), draw(random, 20, 42)];
    const kilowattHours = (watts * hours * 30) / 1000;
    return turns(
      say(
        random,
        `What does it cost to run ${watts} watts for ${hours} hours a day?`,
        `A machine of ${watts} watts runs ${hours} hours every day. What do I pay?`,
      ),
      `In a month of 30 days that is ${watts} × ${hours} × 30 ÷ 1000, or ${num(kilowattHours, 1)} kilowatt hours. What is your price?`,
      `${cents} cents for each.`,
      `Then it is ${num((kilowattHours * cents) / 100, 2)} a month and about ${num((kilowattHours * cents * 12) / 100, 0)} a year.`,
    );
  },

  battery(random) {
    const [volts, ampereHours, watts] = [
      random.pick([12, 18, 24, 36]),
      draw(random, 2, 20),
      draw(random, 6, 60, 2),
    ];
    const energy = volts * ampereHours;
    return turns(
      `How long will a ${volts} volt battery of ${ampereHours} ampere hours run a load of ${watts} watts?`,
      `It stores ${volts} × ${ampereHours}, that is ${energy} watt hours. Divided by ${watts} you get ${num(energy / watts, 1)} hours at best.`,
      say(random, 'And in practice?', 'Is that realistic?', 'Can I count on it?'),
      `Count on 85 percent, about ${num((energy / watts) * 0.85, 1)} hours, and on less in the cold or with an old pack of ${energy} watt hours.`,
    );
  },

  concrete(random) {
    const [length, width, depth] = [draw(random, 1, 6, 0.5), draw(random, 0.8, 3, 0.2), draw(random, 8, 20)];
    const volume = (length * width * depth) / 100;
    return turns(
      `I want to pour a slab of ${num(length)} by ${num(width)} metres, ${depth} centimetres thick. How much concrete is it?`,
      `${num(length)} × ${num(width)} × ${num(depth / 100, 2)} is ${num(volume, 2)} cubic metres.`,
      'How many bags of 25 kilos?',
      `A bag makes about 12 litres, so you need ${Math.ceil((volume * 1000) / 12)}. ${volume > 0.8 ? 'At that amount have it delivered.' : 'A small mixer will do.'} It will weigh around ${num(volume * 2.3, 1)} tonnes.`,
    );
  },

  mixture(random) {
    const [parts, litres] = [random.pick([25, 30, 40, 50]), draw(random, 1.5, 10, 0.5)];
    const oil = (litres * 1000) / parts;
    const [question, answer] = random.pick([
      [
        'Does it hurt to add more?',
        'A little too much smokes and fouls the plug; too little ruins the piston.',
      ],
      ['What if I forget it?', 'Without oil the engine seizes within minutes.'],
      ['Which goes in first?', 'Oil first, then half the petrol, shake, then the rest.'],
    ] as const);
    return turns(
      `My ${random.pick(['chainsaw', 'brush cutter', 'hedge trimmer', 'outboard'])} wants petrol and oil at ${parts} to 1. How much oil for ${num(litres)} litres?`,
      `${num(litres * 1000)} millilitres divided by ${parts} is ${num(oil, 0)} millilitres of oil.`,
      question,
      `${answer} So measure those ${num(oil, 0)} ml with a cup.`,
    );
  },

  thinning(random) {
    const [parts, cups] = [draw(random, 2, 9), draw(random, 300, 2000, 50)];
    const water = cups / (parts + 1);
    return turns(
      `The label says dilute 1 to ${parts}. I need ${num(cups)} millilitres in the end.`,
      `One part and ${parts} parts are ${parts + 1} in all. ${num(cups)} ÷ ${parts + 1} is ${num(water, 0)}, so take ${num(water, 0)} ml of the concentrate and ${num(cups - water, 0)} ml of water.`,
      'What if I have only half as much concentrate?',
      `Then everything halves: ${num(water / 2, 0)} ml with ${num((cups - water) / 2, 0)} ml of water.`,
    );
  },

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

  curtains(random) {
    const [window, drop] = [draw(random, 80, 320, 10), draw(random, 120, 260, 5)];
    const fabric = random.pick([140, 150, 280]);
    const widths = Math.ceil((window * 2) / fabric);
    const length = widths * (drop + 25);
    return turns(
      `How much cloth do curtains for a window of ${window} cm need? They should hang ${drop} cm, and the cloth is ${fabric} cm wide.`,
      `For good folds take twice the width, ${window * 2} cm. That is ${widths} ${widths === 1 ? 'length' : 'lengths'} of your cloth, each ${drop} cm plus 25 for the hems: ${num(length / 100, 2)} metres.`,
      'It may shrink.',
      `Then add five percent, buy ${num(Math.ceil((length * 1.05) / 10) / 10, 1)} metres, and wash it before you cut.`,
    );
  },

  pitch(random) {
    const [size, pitch] = random.pick([
      ['M4', 0.7],
      ['M5', 0.8],
      ['M6', 1],
      ['M8', 1.25],
      ['M10', 1.5],
      ['M12', 1.75],
    ] as const);
    const travel = draw(random, 3, 30);
    const turnsNeeded = travel / pitch;
    return turns(
      `How many turns does an ${size} screw need to move ${travel} mm?`,
      `Its pitch is ${pitch} mm, so ${travel} ÷ ${pitch} makes ${num(turnsNeeded, 1)} turns.`,
      'And a quarter turn?',
      `A quarter of ${pitch} is ${num(pitch / 4, 3)} mm. ${say(random, `That is how a ${size} foot levels a table finely.`, `Good to know when you set an ${size} stop.`)}`,
    );
  },

  scale(random) {
    const [scale, centimetres] = [random.pick([5, 10, 20, 25, 50, 100]), draw(random, 2, 28, 0.5)];
    const real = draw(random, 1.5, 9, 0.5);
    return turns(
      `On a plan of 1 to ${scale} a wall is ${num(centimetres)} centimetres long. How long is it really?`,
      `${num(centimetres)} × ${scale} is ${num(centimetres * scale)} centimetres, or ${num((centimetres * scale) / 100, 2)} ${centimetres * scale === 100 ? 'metre' : 'metres'}.`,
      `And how do I draw ${num(real)} metres?`,
      `${num(real * 100)} ÷ ${scale}: a line of ${num((real * 100) / scale, 1)} centimetres on a sheet at 1 to ${scale}.`,
    );
  },

  mean(random) {
    const base = draw(random, 120, 900);
    const readings = [
      base + draw(random, 0, 9) / 10,
      base + draw(random, 0, 9) / 10,
      base + draw(random, 0, 9) / 10,
    ];
    const mean = readings.reduce((a, b) => a + b) / 3;
    const spread = Math.max(...readings) - Math.min(...readings);
    return turns(
      `I measured ${readings.map((r) => num(r, 1)).join(', ')} mm. Which one is right?`,
      `Take the mean: their sum divided by three is ${num(mean, 2)} mm. They differ by ${num(spread, 1)} mm${spread > 0.5 ? ', which is a lot, so measure once more' : ''}.`,
      'How do I get better readings?',
      `${say(random, 'Read with your eye straight above the mark', 'Measure from the 100 mark instead of the worn end', 'Use the same tape for the whole job')} and the spread of ${num(spread, 1)} will shrink.`,
    );
  },

  table(random) {
    const diameter = draw(random, 80, 200, 5);
    const round = Math.PI * diameter;
    return turns(
      say(
        random,
        `How many people fit at a round table of ${diameter} centimetres?`,
        `I am building a round table, ${diameter} cm across. How many can sit?`,
      ),
      `It measures ${num(round, 0)} centimetres round the edge. With 60 for each person that is ${Math.floor(round / 60)}.`,
      'How long must the strip for the edge be?',
      `A bit more than the way round: cut ${num(Math.ceil((round + 4) / 5) * 5)} centimetres and trim it when it lies on the ${diameter} cm top.`,
    );
  },

  rain(random) {
    const [area, rain] = [draw(random, 8, 90), draw(random, 4, 30)];
    const litres = area * rain * 0.8;
    const barrel = random.pick([200, 300, 500]);
    return turns(
      `How much water runs off a roof of ${area} square metres in ${rain} millimetres of rain?`,
      `A millimetre on a square metre is one litre, so ${area * rain} litres fall. Some splashes and evaporates; about ${num(litres, 0)} reach the gutter.`,
      `My barrel holds ${barrel} litres.`,
      litres > barrel
        ? `It will be full, and ${num(litres - barrel, 0)} litres run over. Lead the overflow away from the wall.`
        : `It takes all of it and has room for ${num(barrel - litres, 0)} more.`,
    );
  },

  pressure(random) {
    const psi = draw(random, 20, 110, 1);
    return turns(
      say(
        random,
        `My pump shows psi. How much is ${psi} psi in bar?`,
        `The tyre says ${psi} psi. And in bar?`,
      ),
      `Divide by 14.5: ${psi} psi are ${num(psi / 14.504, 1)} bar.`,
      'Is there a rule of thumb?',
      `Take a fifteenth and add a little. For ${psi} that gives ${num(psi / 15, 1)} and a bit.`,
    );
  },

  convert(random) {
    const [name, unit, factor, to] = random.pick([
      ['pounds', 'pound', 0.4536, 'kilos'],
      ['miles', 'mile', 1.609, 'kilometres'],
      ['US gallons', 'gallon', 3.785, 'litres'],
      ['feet', 'foot', 0.3048, 'metres'],
      ['ounces', 'ounce', 28.35, 'grams'],
      ['yards', 'yard', 0.9144, 'metres'],
    ] as const);
    const value = draw(random, 3, 90);
    const back = draw(random, 5, 60);
    return turns(
      say(random, `What are ${value} ${name} in ${to}?`, `How many ${to} is ${value} ${name}?`),
      `A ${unit} is ${factor} ${to}, so ${value} ${name} are ${num(value * factor, 1)} ${to}.`,
      `And ${back} ${to} back in ${name}?`,
      `Divide by ${factor} instead: ${num(back / factor, 2)} ${name}.`,
    );
  },

  pace(random) {
    const [done, minutes, total] = [draw(random, 2, 12), draw(random, 15, 75, 5), draw(random, 18, 70)];
    const all = (total / done) * minutes;
    return turns(
      `I laid ${done} ${random.pick(['boards', 'rows', 'slabs', 'metres'])} in ${minutes} minutes. How long for all ${total}?`,
      `One takes ${num(minutes / done, 1)} minutes, so ${total} take ${num(all, 0)} minutes, or ${num(all / 60, 1)} hours.`,
      'And with a helper?',
      `Two are seldom twice as fast. Reckon with two thirds of the time: ${num((all * 2) / 3 / 60, 1)} hours.`,
    );
  },

  price(random) {
    const [small, large] = [draw(random, 20, 100, 10), draw(random, 150, 500, 50)];
    const [smallPrice, largePrice] = [draw(random, 2, 6, 0.5), draw(random, 8, 24, 0.5)];
    const [a, b] = [(smallPrice / small) * 100, (largePrice / large) * 100];
    return turns(
      `A box of ${small} screws costs ${num(smallPrice, 2)} and one of ${large} costs ${num(largePrice, 2)}. Which is cheaper?`,
      `By the hundred: ${num(a, 2)} for the small box, ${num(b, 2)} for the large. The ${a < b ? 'small' : 'large'} one wins.`,
      `I need only ${Math.round(small * 0.8)}.`,
      `Then buy ${smallPrice < largePrice ? `the small one for ${num(smallPrice, 2)}` : `the large one for ${num(largePrice, 2)}`}. Screws that lie in a drawer save no money.`,
    );
  },

  fractions(random) {
    const [a, b] = [draw(random, 1, 15), draw(random, 1, 15)];
    const show = (sixteenths: number): string => {
      const [whole, rest] = [Math.floor(sixteenths / 16), sixteenths % 16];
      if (rest === 0) return String(whole);
      let [n, d] = [rest, 16];
      while (n % 2 === 0) [n, d] = [n / 2, d / 2];
      return whole > 0 ? `${whole} ${n}/${d}` : `${n}/${d}`;
    };
    return [
      user(`What is ${show(a)} inch plus ${show(b)} inch?`),
      assistant(
        `${show(a + b)} inch.`,
        `In sixteenths that is ${a} and ${b}, together ${a + b}. ${a + b} sixteenths are ${show(a + b)}.`,
      ),
      user('In millimetres?'),
      assistant(`${num(((a + b) / 16) * 25.4, 1)} mm for ${show(a)} and ${show(b)} together.`),
    ];
  },
};
