"""The studio in a headless Chromium: how soon a picture follows a slider, and how smoothly a point.

From the moment a slider moves until the picture that was made for it is on the page: the page's own
work, the way to the library and back, the fit, the grid of 120 x 120 predictions and the drawing.
Each learner is warm, and 40 changes are taken one after the other. There is no peer that does the
same. Without a graphics card the browser draws on the processor, which the library needs as well.
"""

from __future__ import annotations

import json
import shutil
import signal
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import pairwise

CHANGES = 40
WARM = 5
SIZES = {200: 100, 5000: 500}  # points, and the milliseconds that 19 of 20 changes may take
LEARNERS = {
    "SVC": ("SVC", {"C": 1.0}, "C"),
    "DecisionTreeClassifier": ("DecisionTreeClassifier", {"max_depth": 5}, "max_depth"),
    "RandomForestClassifier, 50 trees": (
        "RandomForestClassifier",
        {"n_estimators": 50, "max_depth": 5},
        "max_depth",
    ),
    "AdaBoostClassifier, 50 stumps": (
        "AdaBoostClassifier",
        {"n_estimators": 50, "max_depth": 1},
        "learning_rate",
    ),
}
SWITCHES = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
]  # fmt: skip
DRAGGED = 4.0  # seconds
SLOW_FRAME = 20.0  # milliseconds: later than the next tick of a screen with 60 a second

# A change begins with the event of the slider and ends with the frame after the one in which the
# page took off its mark "waiting": then the new picture has been drawn.
_CHANGE = """([name, place]) => new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("no picture came")), 60_000);
    const slider = document.querySelector(`[data-testid=parameter-${name}]`);
    const box = document.querySelector(".stage-box");
    const start = performance.now();
    let wasWaiting = false;
    const look = () => {
        const isWaiting = box.classList.contains("waiting");
        if (wasWaiting && !isWaiting) {
            requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
            return true;
        }
        wasWaiting ||= isWaiting;
        return false;
    };
    const observer = new MutationObserver(() => look() && observer.disconnect());
    observer.observe(box, { attributes: true, attributeFilter: ["class"] });
    slider.value = String(place);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    slider.dispatchEvent(new Event("change", { bubbles: true }));
})"""
_WATCH_FRAMES = """() => {
    window.margroveFrames = [];
    const note = (time) => {
        window.margroveFrames.push(time);
        window.margroveTicket = requestAnimationFrame(note);
    };
    window.margroveTicket = requestAnimationFrame(note);
}"""
_SEEN_FRAMES = """() => {
    cancelAnimationFrame(window.margroveTicket);
    return window.margroveFrames;
}"""


def chromium_path():
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def opened_page():
    """The studio's page, with its first picture."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "margrove", "studio", "--no-browser"]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        link = next(line.strip() for line in server.stdout if "#token=" in line)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=SWITCHES)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(120_000)
            page.goto(link)
            page.wait_for_selector("[data-testid=stage][data-fitted=yes]")
            yield page
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate()


def load(page, learner, parameters, size):
    from margrove.studio.content.presets import points_of
    from margrove.studio.content.scenes import scene_from

    points = points_of("moons", size=size, noise=0.25, seed=0)
    scene = scene_from(
        points
        | {"version": 1, "testShare": 0, "seed": 0, "learner": learner, "parameters": parameters}
    ).as_dict()
    file = {"name": "scene.json", "mimeType": "application/json"}
    content = json.dumps(scene).encode()
    page.get_by_test_id("scene-file").set_input_files({**file, "buffer": content})
    page.wait_for_selector(f"[data-testid=stage][data-points='{size}'][aria-label*='{learner} ']")
    settle(page)
    return scene


def settle(page):
    page.wait_for_timeout(100)
    page.wait_for_selector(".stage-box:not(.waiting)")


def slider_seconds(page, name):
    """Milliseconds of each change, to and fro between the halves of the slider, of 1000 places."""
    places = [300 + 300 * (k % 2) + 4 * (k % CHANGES) for k in range(WARM + CHANGES)]
    taken = []
    for place in places:
        taken.append(page.evaluate(_CHANGE, [name, place]))
        page.wait_for_timeout(30)
    return taken[WARM:]


def drag(page, scene):
    """Milliseconds between frames while the first point goes away and comes back."""
    box = page.get_by_test_id("stage").bounding_box()
    left, top, width, height = 48, 12, box["width"] - 62, box["height"] - 54
    (low, high), (bottom, up) = scene["view"]["x"], scene["view"]["y"]

    def pixel(x, y):
        right = (x - low) / (high - low)
        rise = (y - bottom) / (up - bottom)
        return box["x"] + left + right * width, box["y"] + top + (1 - rise) * height

    x, y = scene["x"][0]
    page.mouse.move(*pixel(x, y))
    page.mouse.down()
    page.evaluate(_WATCH_FRAMES)
    start = time.perf_counter()
    while (share := (time.perf_counter() - start) / DRAGGED) < 1:
        away = min(share, 1 - share)
        page.mouse.move(*pixel(x + away * 0.3 * (high - low), y + away * 0.3 * (up - bottom)))
        page.wait_for_timeout(8)
    frames = page.evaluate(_SEEN_FRAMES)
    page.mouse.up()
    settle(page)
    return [after - before for before, after in pairwise(frames)]


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report():
    if chromium_path() is None:
        return "Needs Chromium, which is not installed."
    heads = ["learner", "points", "p50 ms", "p95 ms", "wanted", "frames a second", "over 20 ms"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    with opened_page() as page:
        for title, (learner, parameters, moved) in LEARNERS.items():
            for size, wanted in SIZES.items():
                scene = load(page, learner, parameters, size)
                taken = slider_seconds(page, moved)
                scene = load(page, learner, parameters, size)
                frames = drag(page, scene)
                slow = sum(own > SLOW_FRAME for own in frames) / len(frames)
                lines.append(
                    f"| {title} | {size:,} | {statistics.median(taken):.0f} | "
                    f"{quantile(taken, 0.95):.0f} | < {wanted} | "
                    f"{1000 / statistics.mean(frames):.0f} | {100 * slow:.0f}% |"
                )
                print(lines[-1], flush=True)
    note = (
        "The slider is that of C (0.1 to 40), of the depth, or of the learning rate; frames are "
        "those of the browser while a point is dragged and pictures are made for it."
    )
    lines += ["", note]
    return "\n".join(lines)
