import { draw, type Calculation } from './calculation.ts';
import { assistant, num, say, turns, user } from './chat.ts';

/** What a household and its clock add up. */
export const everyday: Record<string, Calculation> = {
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
