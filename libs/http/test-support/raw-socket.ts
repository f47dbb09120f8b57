import { connect } from 'node:net';

/** Sends the bytes to a server at 127.0.0.1 and resolves with all it answers until it closes the connection. */
export function sendRaw(port: number, ...parts: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      for (const part of parts) socket.write(part);
    });
    let answer = '';
    socket.on('data', (data) => (answer += data.toString()));
    socket.on('close', () => resolve(answer));
    // A server that closes while the client still sends resets the connection; what it said before counts.
    socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)));
  });
}

/** The JSON body of the last answer in raw bytes. */
export function lastJson(raw: string): Record<string, unknown> {
  return JSON.parse(raw.slice(raw.lastIndexOf('\r\n\r\n') + 4)) as Record<string, unknown>;
}
