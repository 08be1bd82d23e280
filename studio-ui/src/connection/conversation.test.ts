import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Scene } from "../protocol";
import { AskError, Superseded } from "./answers";
import { Conversation, type Keeper, type Socket } from "./conversation";
import { frameOf } from "./fakeFrame";
import { tokenIn } from "./keys";

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
let keeper: Keeper & { own: { token: string | null; key: string | null } };
let conversation: Conversation;

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
  keeper = {
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
  conversation = new Conversation(() => {
    const socket = new FakeSocket();
    sockets.push(socket);
    return socket;
  }, keeper);
});

afterEach(() => {
  vi.useRealTimers();
});

describe("the beginning", () => {
  it("exchanges the token for a key", () => {
    conversation.start();
    newest().onopen?.({} as Event);
    expect(newest().sent).toEqual([{ kind: "hello", token: "token-1" }]);
    newest().tell(WELCOME);
    expect(conversation.state).toBe("open");
    expect(keeper.own.key).toBe("key-1");
  });

  it("asks for a link without token and key, and connects to nothing", () => {
    keeper.own.token = null;
    conversation.start();
    expect(conversation.state).toBe("refused");
    expect(sockets).toHaveLength(0);
  });

  it("is refused by a server that was started again, and begins anew with a new token", () => {
    keeper.own.token = null;
    keeper.own.key = "key-of-yesterday";
    conversation.start();
    newest().onopen?.({} as Event);
    newest().tell({ kind: "refused", reason: "unknown key" });
    expect(conversation.state).toBe("refused");
    expect(keeper.own.key).toBeNull();
    vi.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(1);
    keeper.own.token = "token-2";
    conversation.start();
    welcome();
    expect(conversation.state).toBe("open");
  });
});

describe("questions", () => {
  it("waits for the welcome and is sent once", async () => {
    const answer = conversation.ask({ kind: "catalogue" });
    conversation.start();
    const socket = welcome();
    const questions = socket.sent.filter((message) => message.kind === "catalogue");
    expect(questions).toHaveLength(1);
    socket.answer(questions[0]!, { learners: [] });
    await expect(answer).resolves.toEqual({ learners: [] });
  });

  it("is sent once when asked upon the news of the welcome", () => {
    const asking = new Conversation(
      () => {
        const socket = new FakeSocket();
        sockets.push(socket);
        return socket;
      },
      keeper,
      (own) => {
        if (own.state === "open") void own.ask({ kind: "catalogue" });
      },
    );
    asking.start();
    const socket = welcome();
    expect(socket.sent.filter((message) => message.kind === "catalogue")).toHaveLength(1);
  });

  it("replaces the older question of a channel and ignores its answer", async () => {
    conversation.start();
    const socket = welcome();
    const older = conversation.ask({ kind: "impurity", share: 0.1 });
    const first = socket.last;
    const newer = conversation.ask({ kind: "impurity", share: 0.2 });
    const second = socket.last;
    await expect(older).rejects.toBeInstanceOf(Superseded);
    socket.answer(first, "old");
    socket.answer(second, "new");
    await expect(newer).resolves.toBe("new");
  });

  it("keeps channels apart", async () => {
    conversation.start();
    const socket = welcome();
    const one = conversation.ask({ kind: "impurity", share: 0.1 }, { channel: "a" });
    const first = socket.last;
    const other = conversation.ask({ kind: "impurity", share: 0.2 }, { channel: "b" });
    socket.answer(socket.last, 2);
    socket.answer(first, 1);
    await expect(Promise.all([one, other])).resolves.toEqual([1, 2]);
  });

  it("tells progress, failures and cancellations", async () => {
    conversation.start();
    const socket = welcome();
    const notes: string[] = [];
    const failed = conversation.ask(
      { kind: "map", scene: {} as Scene },
      { onProgress: (progress) => notes.push(progress.note) },
    );
    const { id, channel } = socket.last;
    socket.tell({ kind: "progress", id, channel, note: "fitting", done: 1, total: 2 });
    socket.tell({ kind: "progress", id: 999, channel, note: "of another", done: 1, total: 2 });
    socket.tell({ kind: "error", id, channel, message: "gamma must be positive" });
    await expect(failed).rejects.toEqual(new AskError("gamma must be positive"));
    expect(notes).toEqual(["fitting"]);
    const stopped = conversation.ask({ kind: "catalogue" });
    conversation.cancel("catalogue");
    await expect(stopped).rejects.toBeInstanceOf(Superseded);
    expect(socket.last).toMatchObject({ kind: "cancel", channel: "catalogue" });
  });

  it("stops by an abort signal", async () => {
    conversation.start();
    const socket = welcome();
    const stop = new AbortController();
    const asked = conversation.ask({ kind: "catalogue" }, { signal: stop.signal });
    stop.abort();
    await expect(asked).rejects.toBeInstanceOf(Superseded);
    expect(socket.last.kind).toBe("cancel");
  });

  it("leaves nobody waiting after a frame that cannot be read", async () => {
    conversation.start();
    const socket = welcome();
    const asked = conversation.ask({ kind: "catalogue" });
    socket.onmessage?.({ data: new ArrayBuffer(2) } as MessageEvent);
    await expect(asked).rejects.toBeInstanceOf(AskError);
  });
});

describe("a lost connection", () => {
  it("comes back with the key and sends again what has no answer", async () => {
    conversation.start();
    const first = welcome();
    const asked = conversation.ask({ kind: "catalogue" });
    first.onclose?.({} as CloseEvent);
    expect(conversation.state).toBe("waiting");
    vi.advanceTimersByTime(300);
    expect(sockets).toHaveLength(2);
    const second = welcome();
    expect(second.sent[0]).toEqual({ kind: "hello", key: "key-1" });
    second.answer(second.last, "answer");
    await expect(asked).resolves.toBe("answer");
  });

  it("waits longer and longer, up to eight seconds, and starts over once connected", () => {
    conversation.start();
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
    conversation.start();
    welcome().onclose?.({} as CloseEvent);
    conversation.hurry();
    expect(sockets).toHaveLength(2);
    vi.advanceTimersByTime(10_000);
    expect(sockets).toHaveLength(2);
  });

  it("hears nothing more from an older socket", () => {
    conversation.start();
    const first = welcome();
    conversation.start();
    expect(first.isClosed).toBe(true);
    first.onclose?.({} as CloseEvent);
    expect(conversation.state).toBe("connecting");
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
