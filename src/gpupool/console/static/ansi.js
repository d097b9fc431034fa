// Terminal escape sequences: finds them in text, and takes them out.

// ESC [ ... letter, ESC ] ... BEL, ESC and one or two more characters.
export const SEQUENCE = /\x1b(?:\[([0-?]*)([ -/]*)([@-~])|\]([^\x07\x1b]*)(?:\x07|\x1b\\)|([ -/]?)([0-Z\\^-~]))/y;

const EVERYWHERE = new RegExp(SEQUENCE.source, "g");

export const plain = (text) => text.replace(EVERYWHERE, "").replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
