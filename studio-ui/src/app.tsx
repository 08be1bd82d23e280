import { useEffect } from "preact/hooks";
import { ConnectionBanner } from "./connection/ConnectionBanner";
import { connectionState, welcome } from "./connection/studio";
import { Fence } from "./errors/notes";
import { Icon, type IconName } from "./looks/icons";
import { projector, type Theme, theme } from "./looks/theme";
import { MODES } from "./modes/registry";
import { Playground } from "./playground/Playground";
import { type ModeEntry, mode, openMode } from "./state/mode";
import { catalogue, redo, undo } from "./state/scene";

export const ALL_MODES: ModeEntry[] = [
  { name: "playground", title: "Playground", component: Playground },
  ...MODES,
];

/** The header with its tabs, and the mode that is open. */
export function App() {
  useEffect(() => {
    document.addEventListener("keydown", onHistoryKey);
    return () => document.removeEventListener("keydown", onHistoryKey);
  }, []);
  const open = ALL_MODES.find((entry) => entry.name === mode.value) ?? ALL_MODES[0]!;
  const Mode = open.component;
  useEffect(() => {
    document.title = `${open.title} – margrove studio`;
  }, [open]);
  return (
    <>
      <button type="button" class="skip" onClick={skipToMain}>
        Skip to the content
      </button>
      <Header open={open.name} />
      <ConnectionBanner />
      <main id="main" tabIndex={-1} data-testid={`mode-${open.name}`}>
        <h1 class="unseen">{open.title}</h1>
        {catalogue.value ? (
          <Fence key={open.name} name={open.title.toLowerCase()}>
            <Mode />
          </Fence>
        ) : (
          <Starting />
        )}
      </main>
    </>
  );
}

function Header({ open }: { open: string }) {
  return (
    <header class="top">
      <p class="brand">
        <strong>margrove</strong> studio
      </p>
      <nav class="tabs" aria-label="Modes">
        {ALL_MODES.map((entry) => (
          <button
            key={entry.name}
            type="button"
            class="tab"
            aria-current={entry.name === open ? "page" : undefined}
            data-testid={`tab-${entry.name}`}
            onClick={() => openMode(entry.name)}
          >
            {entry.title}
          </button>
        ))}
      </nav>
      <div class="top-tools">
        <ConnectionDot />
        <button
          type="button"
          class="tool icon-only"
          aria-pressed={projector.value}
          aria-label="Larger, for a projector"
          title="Larger, for a projector"
          data-testid="projector"
          onClick={() => {
            projector.value = !projector.value;
          }}
        >
          <Icon name="projector" />
        </button>
        <ThemeButton />
      </div>
    </header>
  );
}

const THEMES: Record<Theme, { next: Theme; icon: IconName; title: string }> = {
  auto: { next: "light", icon: "auto", title: "Colours: as the system has them" },
  light: { next: "dark", icon: "sun", title: "Colours: light" },
  dark: { next: "auto", icon: "moon", title: "Colours: dark" },
};

function ThemeButton() {
  const { next, icon, title } = THEMES[theme.value];
  return (
    <button
      type="button"
      class="tool icon-only"
      aria-label={title}
      title={title}
      data-testid="theme"
      data-theme-choice={theme.value}
      onClick={() => {
        theme.value = next;
      }}
    >
      <Icon name={icon} />
    </button>
  );
}

const STATES = {
  open: "connected",
  connecting: "connecting",
  waiting: "not connected",
  refused: "not connected",
};

function ConnectionDot() {
  const state = connectionState.value;
  const version = welcome.value ? `margrove ${welcome.value.version}, ` : "";
  return (
    <span
      class={`dot ${state}`}
      role="img"
      aria-label={`Studio ${STATES[state]}`}
      title={`${version}${STATES[state]}`}
      data-testid="connection"
      data-state={state}
    />
  );
}

function Starting() {
  const isRefused = connectionState.value === "refused";
  return (
    <div class="starting" role="status" data-testid="starting">
      {isRefused ? (
        <p>Nothing to show without the studio.</p>
      ) : (
        <>
          <progress aria-label="starting" />
          <p>The studio is starting.</p>
        </>
      )}
    </div>
  );
}

function skipToMain(): void {
  document.getElementById("main")?.focus();
}

/** Undo and redo, unless a text is being typed, which has its own. */
function onHistoryKey(event: KeyboardEvent): void {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
  const target = event.target as HTMLElement | null;
  if (target?.matches("input[type=text], textarea, [contenteditable]")) return;
  const key = event.key.toLowerCase();
  if (key === "z") {
    event.preventDefault();
    if (event.shiftKey) redo();
    else undo();
  } else if (key === "y") {
    event.preventDefault();
    redo();
  }
}
