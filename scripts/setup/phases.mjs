/** Shows which phase runs: one line each; on a terminal the line counts the seconds and ends with a tick and the time. */
export class Phases {
  /**
   * @param {NodeJS.WriteStream} out
   * @param {{ quiet?: boolean }} [options] quiet: phases that nobody needs to see are shown only if they take longer than a second
   */
  constructor(out, { quiet = false } = {}) {
    this.out = out;
    this.quiet = quiet;
    this.terminal = out.isTTY === true;
  }

  /**
   * Runs the work and shows it under the title. `tell` gives the line its final words, such as a version or an address.
   * @template T
   * @param {string} title
   * @param {(tell: (text: string) => void) => Promise<T>} work
   * @returns {Promise<T>}
   */
  async run(title, work) {
    const startedMs = Date.now();
    let told = title;
    const seconds = () => ((Date.now() - startedMs) / 1000).toFixed(1);
    let shown = false;
    const show = () => {
      if (this.terminal) this.out.write(`\r\x1b[2K  … ${title} ${seconds()} s`);
      else if (!shown) this.out.write(`- ${title} ...\n`);
      shown = true;
    };
    const timer = setInterval(show, this.quiet ? 1000 : 250);
    if (!this.quiet) show();
    try {
      const result = await work((text) => (told = text));
      if (this.terminal && (shown || !this.quiet)) this.out.write(`\r\x1b[2K  ✓ ${told} (${seconds()} s)\n`);
      return result;
    } catch (error) {
      if (this.terminal && shown) this.out.write(`\r\x1b[2K  ✗ ${title}\n`);
      throw error;
    } finally {
      clearInterval(timer);
    }
  }
}
