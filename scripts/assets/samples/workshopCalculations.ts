import { draw, type Calculation } from './calculation.ts';
import { num, say, turns } from './chat.ts';

/** What is bought and mixed for a job. */
export const workshop: Record<string, Calculation> = {
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
};
