/** hmdp's rule; the comma that its character class `[0-3,5-9]` allows by slip is no digit and is left out. */
const PHONE = /^1(?:[38][0-9]|4[579]|5[0-35-9]|66|7[0135678]|9[89])[0-9]{8}$/;

/** Whether the text is a mobile number by hmdp's rule: eleven digits, no blanks, no country code. */
export function isPhone(text: unknown): text is string {
  return typeof text === 'string' && PHONE.test(text);
}
