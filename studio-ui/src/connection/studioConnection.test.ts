import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Scene } from "../protocol";
import { AskError, Superseded } from "./answers";
import { frameOf } from "./fakeFrame";
import { tokenIn } from "./keys";
import { type KeyStore, type Socket, StudioConnection } from "./studioConnection";

class FakeSocket implements Socket {
  binaryType = "blob";
  onopen: ((event: Event) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  sent: Record<string, unknown>[] = [];
  isClosed = false;
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {
    this.isClosed = true;
  }
  tell(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) } as MessageEvent);
  }
  answer(request: Record<string, unknown>, body: unknown): void {
    const { id, channel } = request;
    const data = frameOf({ kind: "result", id, channel, body, arrays: {} });
    this.onmessage?.({ data } as MessageEvent);
  }
  get last(): Record<string, unknown> {
    return this.sent[this.sent.length - 1]!;
  }
}

const WELCOME = { kind: "welcome", key: "key-1", server: "s", version: "1", file: null };

let sockets: FakeSocket[];
let keyStore: KeyStore & { own: { token: string | null; key: string | null } };
let connection: StudioConnection;

function newest(): FakeSocket {
  return sockets[sockets.length - 1]!;
}

function welcome(): FakeSocket {
  const socket = newest();
  socket.onopen?.({} as Event);
  socket.tell(WELCOME);
  return socket;
}

beforeEach(() => {
  vi.useFakeTimers();
  sockets = [];
  const own = { token: "token-1" as string | null, key: null as string | null };
  keyStore = {
    own,
    token: () => {
      const { token } = own;
      own.token = null;
      return token;
    },
    key: () => own.key,
    storeKey: (key) => {
      own.key = key;
    },
  };
  connection = new StudioConnection(() => {
    const socket = new FakeSocket();
    sockets.push(socket);
    return socket;
  }, keyStore);
});

afterEach(() => {
  vi.useRealTimers();
});

describe("the beginning", () => {
  it("exchanges the token for a key", () => {
    connection.start();
    newest().onopen?.({} as Event);
    expect(newest().sent).toEqual([{ kind: "hello", token: "token-1" }]);
    newest().tell(WELCOME);
    expect(connection.state).toBe("open");
    expect(keyStore.own.key).toBe("key-1");
  });

  it("asks for a link without token and key, and connects to nothing", () => {
    keyStore.own.token = null;
    connection.start();
    expect(connection.state).toBe("refused");
    expect(sockets).toHaveLength(0);
  });

  it("is refused by a server that was restarted, and begins anew with a new token", () => {
    keyStore.own.token = null;
    keyStore.own.key = "key-of-yesterday";
    connection.start();
    newest().onopen?.({} as Event);
    newest().tell({ kind: "refused", reason: "unknown key" });
    expect(connection.state).toBe("refused");
    expect(keyStore.own.key).toBeNull();
    vi.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(1);
    keyStore.own.token = "token-2";
    connection.start();
    welcome();
    expect(connection.state).toBe("open");
  });
});

describe("questions", () => {
  it("waits for the welcome and is sent once", async () => {
    const answer = connection.ask({ kind: "catalogue" });
    connection.start();
    const socket = welcome();
    const questions = socket.sent.filter((message) => message.kind === "catalogue");
    expect(questions).toHaveLength(1);
    socket.answer(questions[0]!, { learners: [] });
    await expect(answer).resolves.toEqual({ learners: [] });
  });

  it("is sent once when asked upon the news of the welcome", () => {
    const asking = new StudioConnection(
      () => {
        const socket = new FakeSocket();
        sockets.push(socket);
        return socket;
      },
      keyStore,
      (own) => {
        if (own.state === "open") void own.ask({ kind: "catalogue" });
      },
    );
    asking.start();
    const socket = welcome();
    expect(socket.sent.filter((message) => message.kind === "catalogue")).toHaveLength(1);
  });

  it("replaces the older question of a channel and ignores its answer", async () => {
    connection.start();
    const socket = welcome();
    const older = connection.ask({ kind: "impurity", share: 0.1 });
    const first = socket.last;
    const newer = connection.ask({ kind: "impurity", share: 0.2 });
    const second = socket.last;
    await expect(older).rejects.toBeInstanceOf(Superseded);
    socket.answer(first, "old");
    socket.answer(second, "new");
    await expect(newer).resolves.toBe("new");
  });

  it("keeps channels apart", async () => {
    connection.start();
    const socket = welcome();
    const one = connection.ask({ kind: "impurity", share: 0.1 }, { channel: "a" });
    const first = socket.last;
    const other = connection.ask({ kind: "impurity", share: 0.2 }, { channel: "b" });
    socket.answer(socket.last, 2);
    socket.answer(first, 1);
    await expect(Promise.all([one, other])).resolves.toEqual([1, 2]);
  });

  it("tells progress, failures and cancellations", async () => {
    connection.start();
    const socket = welcome();
    const notes: string[] = [];
    const failed = connection.ask(
      { kind: "map", scene: {} as Scene },
      { onProgress: (progress) => notes.push(progress.note) },
    );
    const { id, channel } = socket.last;
    socket.tell({ kind: "progress", id, channel, note: "fitting", done: 1, total: 2 });
    socket.tell({ kind: "progress", id: 999, channel, note: "of another", done: 1, total: 2 });
    socket.tell({ kind: "error", id, channel, message: "gamma must be positive" });
    await expect(failed).rejects.toEqual(new AskError("gamma must be positive"));
    expect(notes).toEqual(["fitting"]);
    const stopped = connection.ask({ kind: "catalogue" });
    connection.cancel("catalogue");
    await expect(stopped).rejects.toBeInstanceOf(Superseded);
    expect(socket.last).toMatchObject({ kind: "cancel", channel: "catalogue" });
  });

  it("stops by an abort signal", async () => {
    connection.start();
    const socket = welcome();
    const stop = new AbortController();
    const asked = connection.ask({ kind: "catalogue" }, { signal: stop.signal });
    stop.abort();
    await expect(asked).rejects.toBeInstanceOf(Superseded);
    expect(socket.last.kind).toBe("cancel");
  });

  it("leaves nobody waiting after a frame that cannot be read", async () => {
    connection.start();
    const socket = welcome();
    const asked = connection.ask({ kind: "catalogue" });
    socket.onmessage?.({ data: new ArrayBuffer(2) } as MessageEvent);
    await expect(asked).rejects.toBeInstanceOf(AskError);
  });
});

describe("a lost connection", () => {
  it("comes back with the key and sends again what has no answer", async () => {
    connection.start();
    const first = welcome();
    const asked = connection.ask({ kind: "catalogue" });
    first.onclose?.({} as CloseEvent);
    expect(connection.state).toBe("waiting");
    vi.advanceTimersByTime(300);
    expect(sockets).toHaveLength(2);
    const second = welcome();
    expect(second.sent[0]).toEqual({ kind: "hello", key: "key-1" });
    second.answer(second.last, "answer");
    await expect(asked).resolves.toBe("answer");
  });

  it("waits longer and longer, up to eight seconds, and starts over once connected", () => {
    connection.start();
    welcome();
    const pauses = [300, 600, 1200, 2400, 4800, 8000, 8000];
    for (const pause of pauses) {
      const count = sockets.length;
      newest().onclose?.({} as CloseEvent);
      vi.advanceTimersByTime(pause - 1);
      expect(sockets).toHaveLength(count);
      vi.advanceTimersByTime(1);
      expect(sockets).toHaveLength(count + 1);
    }
    welcome();
    newest().onclose?.({} as CloseEvent);
    const count = sockets.length;
    vi.advanceTimersByTime(300);
    expect(sockets).toHaveLength(count + 1);
  });

  it("can be hurried", () => {
    connection.start();
    welcome().onclose?.({} as CloseEvent);
    connection.reconnectNow();
    expect(sockets).toHaveLength(2);
    vi.advanceTimersByTime(10_000);
    expect(sockets).toHaveLength(2);
  });

  it("hears nothing more from an older socket", () => {
    connection.start();
    const first = welcome();
    connection.start();
    expect(first.isClosed).toBe(true);
    first.onclose?.({} as CloseEvent);
    expect(connection.state).toBe("connecting");
  });
});

describe("tokenIn", () => {
  it("finds the token of a link, a fragment or nothing", () => {
    expect(tokenIn("http://127.0.0.1:8765/#token=ab-C_9")).toBe("ab-C_9");
    expect(tokenIn("#token=abc")).toBe("abc");
    expect(tokenIn("token=abc")).toBe("abc");
    expect(tokenIn("http://127.0.0.1:8765/?mytoken=abc")).toBeNull();
    expect(tokenIn("#steps")).toBeNull();
  });
});
