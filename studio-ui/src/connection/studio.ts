/** The page's one connection, as signals. */

import { signal } from "@preact/signals";
import type { Welcome } from "../protocol";
import type { Answers, AskKind, AskOf } from "./answers";
import { storedKey, storeKey, takeToken } from "./keys";
import {
  type AskOptions,
  type ConnectionState,
  type KeyStore,
  type Socket,
  StudioConnection,
} from "./studioConnection";

export const SOCKET_PATH = "/socket";

export const connectionState = signal<ConnectionState>("connecting");
export const welcome = signal<Welcome | null>(null);
export const refusal = signal("");

let token: string | null = null;
let key: string | null = storedKey();

const keyStore: KeyStore = {
  token() {
    const taken = token;
    token = null; // A token is good for one attempt.
    return taken;
  },
  key: () => key,
  storeKey(next) {
    key = next;
    storeKey(next);
  },
};

function connect(): Socket {
  const address = new URL(SOCKET_PATH, window.location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.hash = "";
  return new WebSocket(address) as Socket;
}

const connection = new StudioConnection(connect, keyStore, (changed) => {
  connectionState.value = changed.state;
  welcome.value = changed.welcome;
  refusal.value = changed.refusal;
});

export function startConnection(): void {
  token = takeToken();
  connection.start();
  // A new link pasted into the address bar of this tab changes the fragment only.
  window.addEventListener("hashchange", () => {
    const fresh = takeToken();
    if (fresh !== null) useToken(fresh);
  });
  window.addEventListener("online", () => connection.reconnectNow());
}

/** Begins again with the token of a new link. */
export function useToken(fresh: string): void {
  token = fresh;
  connection.start();
}

export function retryNow(): void {
  connection.reconnectNow();
}

export function ask<Kind extends AskKind>(
  request: AskOf<Kind> & { kind: Kind },
  options?: AskOptions,
): Promise<Answers[Kind]> {
  return connection.ask<Kind>(request, options);
}

export function cancel(channel: string): void {
  connection.cancel(channel);
}

interface Uploaded {
  table: string;
}

/** Sends a table to the studio and returns the name it has there. */
export function uploadTable(
  file: File,
  onProgress?: (sent: number, total: number) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/tables");
    request.setRequestHeader("X-Margrove-Key", key ?? "");
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-Margrove-Name", encodeURIComponent(file.name));
    request.upload.onprogress = (event) => onProgress?.(event.loaded, event.total);
    request.onerror = () =>
      reject(new Error("The table could not be sent; is the studio running?"));
    request.onload = () => {
      if (request.status === 200) resolve((JSON.parse(request.responseText) as Uploaded).table);
      else reject(new Error(request.responseText || "The studio refused the table."));
    };
    request.send(file);
  });
}
