// SPDX-License-Identifier: BSD-3-Clause
// Questions to the solvers and their answers. A transport has one method: ask(bench, want, values),
// a promise of the answer, which fails with the sentence of the refusal.

/** Numbers the questions and hands each answer to who asked. */
class Numbered {
  #waiting = new Map();
  #last = 0;

  question(bench, want, ask) {
    const id = ++this.#last;
    const answer = new Promise((settle, fail) => this.#waiting.set(id, { settle, fail }));
    return { answer, message: { id, bench, want, ask } };
  }

  take({ id, answer, error }) {
    const who = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) who?.settle(answer);
    else who?.fail(new Error(error));
  }

  failAll(sentence) {
    for (const { fail } of this.#waiting.values()) fail(new Error(sentence));
    this.#waiting.clear();
  }
}

/** Over a WebSocket to the server that sent the page. */
export class SocketTransport {
  #numbered = new Numbered();
  #opened;

  constructor(address) {
    this.address = address;
  }

  #open() {
    const socket = new WebSocket(this.address);
    socket.addEventListener("message", (event) => this.#numbered.take(JSON.parse(event.data)));
    const opened = new Promise((settle, fail) => {
      socket.addEventListener("open", () => settle(socket));
      socket.addEventListener("close", () => {
        this.#opened = undefined; // the next question tries again
        const sentence = "The laboratory has ended. Start it again: maxmargin lab";
        this.#numbered.failAll(sentence);
        fail(new Error(sentence));
      });
    });
    return opened;
  }

  async ask(bench, want, values) {
    const socket = await (this.#opened ??= this.#open());
    const { answer, message } = this.#numbered.question(bench, want, values);
    socket.send(JSON.stringify(message));
    return answer;
  }
}

/** Through the kernel of a notebook. */
export class WidgetTransport {
  #numbered = new Numbered();

  constructor(model) {
    this.model = model;
    model.on("msg:custom", (message) => this.#numbered.take(message));
  }

  ask(bench, want, values) {
    const { answer, message } = this.#numbered.question(bench, want, values);
    this.model.send(message);
    return answer;
  }
}
