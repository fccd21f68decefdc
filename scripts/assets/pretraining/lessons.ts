import type { Random } from '../../../main/core/random.ts';
import { say, turns, type Message } from '../samples/chat.ts';
import * as words from './words.ts';

/** Makes one short conversation of everyday English; none is about what the sample chats are about. */
export type Lesson = (random: Random) => Message[];

export const lessons: Record<string, Lesson> = {
  greeting(random) {
    const [name] = random.pick(words.people);
    return turns(
      say(random, 'Hello!', 'Hi there.', 'Good morning!', `Hello, my name is ${name}.`, 'Good evening.'),
      say(
        random,
        'Hello! How are you today?',
        'Hi! It is nice to meet you.',
        'Hello! What would you like to talk about?',
      ),
      say(
        random,
        `I am ${random.pick(words.feelings)}.`,
        `It is ${random.pick(words.weather)} here.`,
        'Tell me something.',
        'I am fine.',
      ),
      say(
        random,
        `I see. ${capital(random.pick(words.weather))} days can do that.`,
        'Then let us talk a little. Ask me anything.',
        `Thank you for telling me. Would you like to hear about a ${random.pick(words.animals)[0]}?`,
        'That is good to hear.',
      ),
    );
  },

  story: (random) => {
    const { text } = story(random);
    return turns(
      say(random, 'Tell me a story.', 'Please tell me a short story.', 'I would like to hear a story.'),
      text,
    );
  },

  reading(random) {
    const told = story(random);
    const [first, second] = random.shuffle([...told.questions]).slice(0, 2);
    return turns(`${told.text} ${first?.[0] ?? ''}`, first?.[1] ?? '', second?.[0] ?? '', second?.[1] ?? '');
  },

  animal(random) {
    const [name, sound, food, home, young, legs] = random.pick(words.animals);
    const facts = random.shuffle([
      [`What does ${a(name)} eat?`, `${capital(a(name))} eats ${food}.`],
      [`Where does ${a(name)} live?`, `${capital(a(name))} lives in ${home}.`],
      [
        `How many legs does ${a(name)} have?`,
        legs === 0 ? `${capital(a(name))} has no legs.` : `${capital(a(name))} has ${count(legs)} legs.`,
      ],
      [`What does ${a(name)} do?`, `${capital(a(name))} ${sound}.`],
      [`What is a young ${name} called?`, `A young ${name} is called ${a(young)}.`],
    ]);
    return turns(...facts.slice(0, 1 + random.below(4)).flat());
  },

  capitalCity(random) {
    const [country, city] = random.pick(words.capitals);
    const [other, otherCity] = random.pick(words.capitals);
    return turns(
      say(random, `What is the capital of ${country}?`, `Which city is the capital of ${country}?`),
      say(random, `The capital of ${country} is ${city}.`, `${city} is the capital of ${country}.`),
      say(random, `And of ${other}?`, `In which country is ${otherCity}?`),
      say(
        random,
        `${otherCity} is the capital of ${other}.`,
        `${otherCity} lies in ${other} and is its capital.`,
      ),
    );
  },

  opposite(random) {
    const pairs = random.shuffle([...words.opposites]).slice(0, 2 + random.below(2));
    return turns(
      ...pairs.flatMap(([x, y], i) => [
        i === 0 ? `What is the opposite of ${x}?` : say(random, `And of ${x}?`, `What about ${x}?`),
        say(random, `The opposite of ${x} is ${y}.`, `${capital(y)} is the opposite of ${x}.`),
      ]),
    );
  },

  sum(random) {
    const [x, y] = [random.below(50), random.below(50)];
    const [big, little] = [Math.max(x, y), Math.min(x, y)];
    return turns(
      say(random, `What is ${x} plus ${y}?`, `Add ${x} and ${y}.`, `How much is ${x} and ${y}?`),
      `${x} plus ${y} is ${x + y}.`,
      say(random, `And ${big} minus ${little}?`, `Take ${little} away from ${big}.`),
      `${big} minus ${little} is ${big - little}.`,
    );
  },

  profession(random) {
    const [who, does, where, tool] = random.pick(words.professions);
    return turns(
      say(random, `What does ${who} do?`, `Tell me what ${who} does.`),
      `${capital(who)} ${does}.`,
      say(random, 'Where?', `Where does ${who} work?`, 'And where is that done?'),
      `${capital(who)} works ${where}.`,
      say(random, 'What is needed for it?', `What does ${who} use?`),
      `For that ${who} uses ${tool}.`,
    );
  },

  reason(random) {
    const chosen = random.shuffle([...words.reasons]).slice(0, 1 + random.below(3));
    return turns(...chosen.flat());
  },

  routine(random) {
    const [what, steps] = random.pick(words.routines);
    const at = 1 + random.below(steps.length - 1);
    return turns(
      say(random, `How do I ${what}?`, `Please tell me how to ${what}.`, `I want to ${what}. What do I do?`),
      `First ${steps[0]}. Then ${steps[1]}. After that ${steps[2]}. Next ${steps[3]}. At the end ${steps[4]}.`,
      `What do I do after I ${steps[at - 1] ?? ''}?`,
      `After that you ${steps[at] ?? ''}.`,
    );
  },

  shopping(random) {
    const [food, price, amount] = [random.pick(words.foods), 2 + random.below(8), 2 + random.below(5)];
    return turns(
      say(random, `I would like some ${food}.`, `Do you have ${food}?`, `How much is the ${food}?`),
      `Yes, we have ${food} today. It costs ${price} coins.`,
      `Then I take ${count(amount)} portions.`,
      `That makes ${price * amount} coins. Would you like ${random.pick(words.foods)} as well?`,
      say(random, 'No, thank you.', 'Yes, please.', 'Another time.'),
      say(
        random,
        `Here you are. Have a ${random.pick(['good', 'nice', 'pleasant'])} day!`,
        'Thank you and goodbye!',
      ),
    );
  },

  way(random) {
    const [, from] = random.pick(words.places);
    const [, to] = random.pick(words.places.filter((place) => place[1] !== from));
    const side = random.pick(['left', 'right']);
    return turns(
      say(random, `How do I get from ${from} to ${to}?`, `I am at ${from}. Where is ${to}?`),
      `Leave ${from} and go straight on. Turn ${side} after the ${random.pick(words.colours)} house, and you will see ${to}.`,
      say(random, 'Is it far?', 'How long does it take?'),
      `It takes about ${count(2 + random.below(9))} minutes on foot.`,
    );
  },
};

interface Story {
  text: string;
  questions: [string, string][];
}

/** A few sentences about one person, one thing and one place, and what can be asked about them. */
export function story(random: Random): Story {
  const [name, pronoun, possessive] = random.pick(words.people);
  const [friend] = random.pick(words.people.filter((person) => person[0] !== name));
  const [at] = random.pick(words.places);
  const [thing, colour, size] = [
    random.pick(words.things),
    random.pick(words.colours),
    random.pick(words.sizes),
  ];
  const [time, sky, feeling] = [
    random.pick(words.times),
    random.pick(words.weather),
    random.pick(words.feelings),
  ];
  const [animal] = random.pick(words.animals);
  const food = random.pick(words.foods);
  const middle = random.shuffle([
    `It was ${sky} and ${pronoun} felt ${feeling}.`,
    `${capital(pronoun)} saw ${a(animal)} there.`,
    `${capital(pronoun)} had some ${food} in ${possessive} bag.`,
    `${friend} came along and asked what it was.`,
    `The ${thing} was ${size} and looked as if it had been there for years.`,
  ]);
  const ending = random.pick([
    `So ${pronoun} took the ${thing} home and put it by the window.`,
    `At last ${pronoun} gave the ${thing} to ${friend}, who was very glad.`,
    `${capital(pronoun)} left the ${thing} where it was and walked home slowly.`,
    `Then ${name} and ${friend} shared the ${food} and went home together.`,
    `When it got dark ${pronoun} ran home and told everyone about the ${thing}.`,
  ]);
  const opening = `${time} ${name} was ${at} and found ${a(colour)} ${thing}.`;
  return {
    text: [opening, ...middle.slice(0, 2 + random.below(4)), ending].join(' '),
    questions: [
      [`What did ${name} find?`, `${name} found ${a(colour)} ${thing}.`],
      [`Where was ${name}?`, `${name} was ${at}.`],
      [`What colour was the ${thing}?`, `The ${thing} was ${colour}.`],
      [`Who found the ${thing}?`, `${name} found it ${at}.`],
      [`Where was the ${thing}?`, `The ${thing} was ${at}.`],
    ],
  };
}

function a(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function count(n: number): string {
  return (
    ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'][n] ?? String(n)
  );
}
