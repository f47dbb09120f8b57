/**
 * @typedef {{ status: string, assertionResults?: { status: string }[] }} FileResult
 * @typedef {{ numPassedTests?: number, numFailedTests?: number, testResults?: FileResult[] }} JsonReport
 */

/**
 * Passed and failed tests in the report of vitest's JSON reporter. A file that could not be run counts as one failure; so does a run that failed, or left no
 * report, although no test did.
 * @param {string} report the text of the report, empty where there is none
 * @param {number} exitCode of vitest
 * @returns {{ passed: number, failed: number }}
 */
export function countTests(report, exitCode) {
  /** @type {JsonReport} */
  let parsed = {};
  try {
    parsed = JSON.parse(report);
  } catch {
    return { passed: 0, failed: 1 };
  }
  const brokenFiles = (parsed.testResults ?? []).filter(
    ({ status, assertionResults = [] }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length;
  const failed = (parsed.numFailedTests ?? 0) + brokenFiles;
  return { passed: parsed.numPassedTests ?? 0, failed: failed === 0 && exitCode !== 0 ? 1 : failed };
}
