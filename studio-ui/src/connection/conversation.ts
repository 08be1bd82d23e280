/**
 * One conversation with the library: hello, questions and their answers, and finding back to a
 * server after the connection was lost.
 *
 * States: `connecting` -> `open` -> (lost) `waiting` -> `connecting` ...; `refused` when neither the
 * token nor the key is known to the server, which is what a server that was started again says.
 * Questions without an answer are kept and sent again when the conversation is open once more.
 */

import type { Ask, Cancelled, Failure, Hello, Progress, Refused, Welcome } from "../protocol";
import { type Answers, AskError, type AskKind, type AskOf, Superseded } from "./answers";
import { decodeFrame, FrameError } from "./frames";

export type ConversationState = "connecting" | "open" | "waiting" | "refused";

export interface AskOptions {
  /** The kind of the request unless another is named. */
  channel?: string;
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

/** What is used of a WebSocket. */
export interface Socket {
  binaryType: string;
  onopen: ((event: Event) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  send(text: string): void;
  close(): void;
}

export interface Keeper {
  /** Read anew at each attempt. */
  token(): string | null;
  key(): string | null;
  /** Null: the key is dead. */
  storeKey(key: string | null): void;
}

interface Waiting {
  id: number;
  channel: string;
  ask: Ask;
  onProgress: ((progress: Progress) => void) | undefined;
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
}

type Told = Welcome | Refused | Progress | Failure | Cancelled;

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 8000;

export class Conversation {
  state: ConversationState = "connecting";
  welcome: Welcome | null = null;
  refusal = "";
  private socket: Socket | null = null;
  private waiting = new Map<string, Waiting>();
  private nextId = 1;
  private attempts = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly connect: () => Socket,
    private readonly keeper: Keeper,
    private readonly onState: (conversation: Conversation) => void = () => {},
  ) {}

  /** Opens the connection; also after a refusal, with a new token. */
  start(): void {
    clearTimeout(this.timer);
    this.closeSocket();
    const token = this.keeper.token();
    const key = this.keeper.key();
    if (token === null && key === null) {
      this.refuse("This page needs the link that the studio printed in the terminal.");
      return;
    }
    // A link opened twice has a dead token, but this tab may have a key: the server tries both.
    const hello: Hello = { kind: "hello" };
    if (token !== null) hello.token = token;
    if (key !== null) hello.key = key;
    this.open(hello);
  }

  /** Asks the library; a newer question on a channel replaces the older one. */
  ask<Kind extends AskKind>(ask: AskOf<Kind>, options: AskOptions = {}): Promise<Answers[Kind]> {
    const channel = options.channel ?? (ask as Ask).kind;
    return new Promise<Answers[Kind]>((resolve, reject) => {
      if (options.signal?.aborted) {
        reject(new Superseded());
        return;
      }
      this.drop(channel);
      const question: Waiting = {
        id: this.nextId++,
        channel,
        ask,
        onProgress: options.onProgress,
        resolve,
        reject,
      };
      this.waiting.set(channel, question);
      options.signal?.addEventListener("abort", () => this.cancelQuestion(question));
      if (this.state === "open") this.send(question);
    });
  }

  /** Stops what runs on a channel; its promise is rejected with `Superseded`. */
  cancel(channel: string): void {
    const question = this.waiting.get(channel);
    if (question) this.cancelQuestion(question);
  }

  /** Tries at once instead of waiting for the next attempt. */
  hurry(): void {
    if (this.state === "waiting") this.start();
  }

  private cancelQuestion(question: Waiting): void {
    if (this.waiting.get(question.channel) !== question) return;
    this.drop(question.channel);
    if (this.state === "open") {
      const { channel } = question;
      this.socket?.send(JSON.stringify({ kind: "cancel", id: this.nextId++, channel }));
    }
  }

  private drop(channel: string): void {
    const question = this.waiting.get(channel);
    this.waiting.delete(channel);
    question?.reject(new Superseded());
  }

  private send(question: Waiting): void {
    const { id, channel, ask } = question;
    this.socket?.send(JSON.stringify({ ...ask, id, channel }));
  }

  private open(hello: Hello): void {
    this.setState("connecting");
    const socket = this.connect();
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send(JSON.stringify(hello));
    socket.onmessage = (event) => {
      if (socket === this.socket) this.hear(event.data as string | ArrayBuffer);
    };
    socket.onclose = () => {
      if (socket === this.socket) this.lose();
    };
    this.socket = socket;
  }

  private hear(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      this.hearResult(data);
      return;
    }
    const told = JSON.parse(data) as Told;
    if (told.kind === "welcome") this.hearWelcome(told);
    else if (told.kind === "refused") this.hearRefused(told);
    else this.hearAbout(told);
  }

  private hearWelcome(welcome: Welcome): void {
    this.attempts = 0;
    this.welcome = welcome;
    this.keeper.storeKey(welcome.key);
    // Sent before anybody hears of it: what is asked upon the news is sent by `ask` itself.
    for (const question of this.waiting.values()) this.send(question);
    this.setState("open");
  }

  private hearRefused(refused: Refused): void {
    this.closeSocket();
    this.keeper.storeKey(null);
    this.refuse(refused.reason);
  }

  private hearResult(frame: ArrayBuffer): void {
    try {
      const result = decodeFrame(frame);
      const question = this.questionOf(result);
      if (!question) return;
      this.waiting.delete(question.channel);
      question.resolve(result.body as never);
    } catch (error) {
      // Which question the frame belongs to is unknown; none can be left waiting for ever.
      if (!(error instanceof FrameError || error instanceof SyntaxError)) throw error;
      this.failAll(`The studio sent something this page cannot read (${error.message}).`);
    }
  }

  private hearAbout(told: Progress | Failure | Cancelled): void {
    const question = this.questionOf(told);
    if (!question) return;
    if (told.kind === "progress") {
      question.onProgress?.(told);
      return;
    }
    this.waiting.delete(question.channel);
    question.reject(told.kind === "error" ? new AskError(told.message) : new Superseded());
  }

  private questionOf(told: { id: number; channel: string }): Waiting | undefined {
    const question = this.waiting.get(told.channel);
    return question?.id === told.id ? question : undefined;
  }

  private failAll(message: string): void {
    const questions = [...this.waiting.values()];
    this.waiting.clear();
    for (const question of questions) question.reject(new AskError(message));
  }

  private lose(): void {
    this.socket = null;
    const pause = Math.min(FIRST_PAUSE * 2 ** this.attempts, LONGEST_PAUSE);
    this.attempts += 1;
    this.setState("waiting");
    this.timer = setTimeout(() => this.start(), pause);
  }

  private refuse(reason: string): void {
    this.refusal = reason;
    this.setState("refused");
  }

  private closeSocket(): void {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private setState(state: ConversationState): void {
    this.state = state;
    this.onState(this);
  }
}
