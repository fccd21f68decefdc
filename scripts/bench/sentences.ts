import { Random } from '../../main/core/random.ts';

const common =
  'the of and to in is you that it for was on are as with they be at one have this from or had by hot but some what ' +
  'there we can out other were all your when up use word how said an each she which do their time if will way about ' +
  'many then them would write like so these her long make thing see him two has look more day could go come did my ' +
  'sound no most number who over know water than call first people may down side been now find any new work part take ' +
  'get place made live where after back little only round man year came show every good me give our under name very ' +
  'through just form much great think say help low line before turn cause same mean differ move right boy old too ' +
  'does tell sentence set three want air well also play small end put home read hand port large spell add even land ' +
  'here must big high such follow act why ask men change went light kind off need house picture try us again animal ' +
  'point mother world near build self earth father head stand own page should country found answer school grow study ' +
  'still learn plant cover food sun four thought let keep eye never last door between city tree cross since hard ' +
  'start might story saw far sea draw left late run while press close night real life few stop open seem together ' +
  'next white children begin got walk example ease paper often always music those both mark book letter until mile ' +
  'river car feet care second group carry took rain eat room friend began idea fish mountain north once base hear ' +
  'horse cut sure watch color face wood main enough plain girl usual young ready above ever red list though feel talk';
const endings = ['', '', 's', 'ed', 'ing', 'ly', 'er', 'ness', 'able', 'ment'];
const beginnings = ['', '', 'over', 'under', 're', 'out', 'inter', 'non'];

/** Words by falling frequency: common ones first, then their compounds, so that a tail of rare ones exists. */
export function makeWords(seed: number, count: number): string[] {
  const random = new Random(seed);
  const stems = common.split(' ');
  const words = new Set(stems);
  while (words.size < count) words.add(random.pick(beginnings) + random.pick(stems) + random.pick(endings));
  return [...words];
}

export class Sentences {
  private readonly random: Random;
  private readonly words: string[];

  constructor(seed: number, words: string[]) {
    this.random = new Random(seed + 1);
    this.words = words;
  }

  /** Sentences of 4 to 18 words, about `numChars` characters of them. */
  text(numChars: number): string {
    let text = '';
    while (text.length < numChars) {
      const words = Array.from({ length: 4 + this.random.below(15) }, () => this.word());
      const sentence = words.join(' ').replace(/ (\S+)$/, this.random.below(3) === 0 ? ', $1' : ' $1');
      text += `${text === '' ? '' : this.random.below(8) === 0 ? '\n\n' : ' '}${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
    }
    return text;
  }

  /** A length with this median; `spread` is the standard deviation of its logarithm. */
  logNormal(median: number, spread: number): number {
    return median * Math.exp(spread * this.random.normal());
  }

  /** Zipf's law, nearly: the rank's logarithm is evenly spread. */
  private word(): string {
    const rank = Math.floor(Math.exp(this.random.uniform() * Math.log(this.words.length)));
    const word = this.words[Math.min(rank, this.words.length) - 1] ?? '';
    return this.random.below(60) === 0 ? String(this.random.below(10_000)) : word;
  }
}
