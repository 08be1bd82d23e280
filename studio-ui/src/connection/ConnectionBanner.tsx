import { useState } from "preact/hooks";
import { scene } from "../state/scene";
import { writeScene } from "../state/sceneFile";
import { download } from "../takeaway/download";
import { tokenIn } from "./keys";
import { connectionState, refusal, retryNow, useToken, welcome } from "./studio";

/** Says when the studio is gone, and how to find it again. */
export function ConnectionBanner() {
  switch (connectionState.value) {
    case "waiting":
      return <LostBanner />;
    case "refused":
      return <NewLinkBanner />;
    default:
      return null;
  }
}

function LostBanner() {
  return (
    <div class="banner warning" role="status" data-testid="connection-lost">
      <p>
        <strong>The studio does not answer.</strong> Your points are kept; the page tries again by
        itself.
      </p>
      <button type="button" class="tool" data-testid="retry" onClick={retryNow}>
        Try now
      </button>
    </div>
  );
}

function NewLinkBanner() {
  const [link, setLink] = useState("");
  const [isWrong, setWrong] = useState(false);
  const wasOpen = welcome.value !== null || scene.value.x.length > 0;
  const submit = (event: Event) => {
    event.preventDefault();
    const isWhole = openLink(link);
    setWrong(!isWhole);
    if (isWhole) setLink("");
  };
  return (
    <div class="banner critical" role="alert" data-testid="connection-refused">
      <p>
        <strong>{wasOpen ? "The studio was restarted." : refusal.value}</strong>{" "}
        {wasOpen
          ? "Your points are kept in this tab. Paste the new link that the terminal shows."
          : "Open it, or paste it here."}
      </p>
      <form class="banner-form" onSubmit={submit}>
        <input
          type="text"
          aria-label="The link that margrove studio printed"
          placeholder="http://127.0.0.1:8765/#token=…"
          autocomplete="off"
          spellcheck={false}
          value={link}
          data-testid="new-link"
          onInput={(event) => setLink(event.currentTarget.value)}
        />
        <button type="submit" class="tool primary" data-testid="use-link">
          Connect
        </button>
        {scene.value.x.length > 0 && (
          <button
            type="button"
            class="tool"
            onClick={() =>
              download("margrove-scene.json", writeScene(scene.value), "application/json")
            }
          >
            Save scene
          </button>
        )}
      </form>
      {isWrong && (
        <p data-testid="wrong-link">That is not a link of the studio: it ends in #token=….</p>
      )}
    </div>
  );
}

/** Uses the token of a link to this page; returns whether the text had one. */
function openLink(link: string): boolean {
  const token = tokenIn(link.includes("token=") ? link : `token=${link.trim()}`);
  if (token === null || token.length < 16) return false;
  const other = addressOf(link);
  if (other && other.host !== window.location.host && isLoopback(other)) {
    window.location.assign(other); // Another port: the page is another one, without these points.
  } else {
    useToken(token);
  }
  return true;
}

function addressOf(link: string): URL | null {
  try {
    return new URL(link.trim());
  } catch {
    return null;
  }
}

/** A pasted link leads nowhere but to this machine. */
function isLoopback(address: URL): boolean {
  return (
    address.protocol === "http:" && /^(127\.0\.0\.1|localhost|\[::1\])$/.test(address.hostname)
  );
}
