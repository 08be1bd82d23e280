/**
 * The connection to the studio: hello, requests and their answers, and reconnecting after the
 * connection was lost.
 *
 * States: `connecting` -> `open` -> (lost) `waiting` -> `connecting` ...; `refused` when the server
 * knows neither the token nor the key, as after a restart. Requests without an answer are kept and
 * sent again when the connection is open.
 */

import type { Ask, Cancelled, Failure, Hello, Progress, Refused, Welcome } from "../protocol";
import { type Answers, AskError, type AskKind, type AskOf, Superseded } from "./answers";
import { decodeFrame, FrameError } from "./frames";

export type ConnectionState = "connecting" | "open" | "waiting" | "refused";

export interface AskOptions {
  /** The kind of the request unless another is named. */
  channel?: string;
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

/** The part of WebSocket that is used. */
export interface Socket {
  binaryType: string;
  onopen: ((event: Event) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  send(text: string): void;
  close(): void;
}

export interface KeyStore {
  /** Read again at each attempt. */
  token(): string | null;
  key(): string | null;
  /** Null: the key is no longer valid. */
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

type ServerMessage = Welcome | Refused | Progress | Failure | Cancelled;

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 8000;

export class StudioConnection {
  state: ConnectionState = "connecting";
  welcome: Welcome | null = null;
  refusal = "";
  private socket: Socket | null = null;
  private waiting = new Map<string, Waiting>();
  private nextId = 1;
  private attempts = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly connect: () => Socket,
    private readonly keyStore: KeyStore,
    private readonly onState: (connection: StudioConnection) => void = () => {},
  ) {}

  /** Opens the connection; also after a refusal, with a new token. */
  start(): void {
    clearTimeout(this.timer);
    this.closeSocket();
    const token = this.keyStore.token();
    const key = this.keyStore.key();
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
  reconnectNow(): void {
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
      if (socket === this.socket) this.handle(event.data as string | ArrayBuffer);
    };
    socket.onclose = () => {
      if (socket === this.socket) this.lose();
    };
    this.socket = socket;
  }

  private handle(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      this.handleResult(data);
      return;
    }
    const message = JSON.parse(data) as ServerMessage;
    if (message.kind === "welcome") this.handleWelcome(message);
    else if (message.kind === "refused") this.handleRefused(message);
    else this.handleOther(message);
  }

  private handleWelcome(welcome: Welcome): void {
    this.attempts = 0;
    this.welcome = welcome;
    this.keyStore.storeKey(welcome.key);
    // Sent before the state changes: requests made upon the change are sent by `ask` itself.
    for (const question of this.waiting.values()) this.send(question);
    this.setState("open");
  }

  private handleRefused(refused: Refused): void {
    this.closeSocket();
    this.keyStore.storeKey(null);
    this.refuse(refused.reason);
  }

  private handleResult(frame: ArrayBuffer): void {
    try {
      const result = decodeFrame(frame);
      const question = this.questionOf(result);
      if (!question) return;
      this.waiting.delete(question.channel);
      question.resolve(result.body as never);
    } catch (error) {
      // The request of this frame is unknown; none may wait for ever.
      if (!(error instanceof FrameError || error instanceof SyntaxError)) throw error;
      this.failAll(`The studio sent something this page cannot read (${error.message}).`);
    }
  }

  private handleOther(message: Progress | Failure | Cancelled): void {
    const question = this.questionOf(message);
    if (!question) return;
    if (message.kind === "progress") {
      question.onProgress?.(message);
      return;
    }
    this.waiting.delete(question.channel);
    question.reject(message.kind === "error" ? new AskError(message.message) : new Superseded());
  }

  private questionOf(message: { id: number; channel: string }): Waiting | undefined {
    const question = this.waiting.get(message.channel);
    return question?.id === message.id ? question : undefined;
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

  private setState(state: ConnectionState): void {
    this.state = state;
    this.onState(this);
  }
}
