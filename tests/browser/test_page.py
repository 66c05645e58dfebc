# SPDX-License-Identifier: Apache-2.0
"""The page before a stand-in: names that attack, 10,000 jobs, narrow screens, the dark, the keyboard, a coordinator
that is away. What is shown of a real cluster is tested in test_live.py."""
from browser import Browser
from standin import JOBS, SERVED, STORY, WIDE, Standin
from testing import check, check_equal, check_in, run, wait_for

VIEWS = ["", "#/jobs?state=queued", "#/workers", "#/workers/w0007", f"#/jobs/{JOBS}", f"#/jobs/{STORY}",
         f"#/jobs/{STORY}?by=step", f"#/jobs/{STORY}/curves", f"#/jobs/{STORY}/logs?task=1", f"#/jobs/{STORY}/shards",
         f"#/jobs/{STORY}/proof", f"#/jobs/{WIDE}", f"#/jobs/{SERVED}"]


def opened(page, standin, view):
    """Opens a view and waits until it shows an answer."""
    page.open(standin.url + view)
    page.run("dispatchEvent(new HashChangeEvent('hashchange'))")
    wait_for(f"{view} is shown", lambda: page.count("main .panel") and not page.count("[aria-busy]"))


def each_view(page, standin):
    for view in VIEWS:
        opened(page, standin, view)
        yield view or "the start"


def test_text_of_jobs_stays_text():
    with Standin() as standin, Browser() as page:
        for view in each_view(page, standin):
            check_equal(page.run("return window.attacked ?? null"), None, f"a name ran a script in {view}")
            check_equal(page.count("main img, main script, main iframe"), 0, f"elements made of names in {view}")
            controls = page.run("return /[\\u0000-\\u0008\\u001b\\u202e]/.test(document.body.textContent)")
            check(not controls, f"a control character is in the text of {view}")
        opened(page, standin, "")
        check_in('<img src=x onerror="window.attacked=1">\\x1b[31m\\u202e', page.text("main"), "the name is shown")
        page.check_quiet()


def test_nothing_is_asked_of_others():
    with Standin() as standin, Browser() as page:
        for _ in each_view(page, standin):
            pass
        others = [url for url in page.asked() if not url.startswith((standin.url, "data:", "chrome:", "about:"))]
        check_equal(others, [], "requests to other origins")
        page.check_quiet()


def test_thousands_are_paged():
    with Standin() as standin, Browser() as page:
        opened(page, standin, "")
        check_equal(page.count("tbody tr"), 50, "rows of the first page")
        check(page.count("*") < 2000, f"{page.count('*')} elements for {JOBS} jobs")
        page.click('a[rel="next"]')
        page.wait_text(f"Jobs {JOBS - 99} to {JOBS - 50}")
        check_equal(page.count("tbody tr"), 50, "rows of the second page")
        page.driver.back()
        page.wait_text(f"Jobs {JOBS - 49} to {JOBS}")
        page.run("const s = document.querySelector('select'); s.value = 'queued'; s.dispatchEvent(new Event('change'))")
        wait_for("only queued jobs are listed", lambda: set(page.texts("tbody .only-wide .badge")) == {"queued"})
        check_in("waits for more workers: it asks for 64 slots", page.text("main"), "why a job waits")
        opened(page, standin, "#/workers")
        check_equal(page.count("tbody tr"), 100, "rows of workers")
        check(page.count("*") < 3500, f"{page.count('*')} elements for 1,000 workers")
        page.click('a[rel="next"]')
        page.wait_text("w0100 to w0199")
        opened(page, standin, f"#/jobs/{WIDE}")
        page.wait_text("300 in all")
        check(page.count("svg.timeline a") < 25, "a picture of 300 tasks has no more than 24 rows")
        check(page.count("*") < 5000, f"{page.count('*')} elements for 300 tasks")
        page.click('[data-key="quiet"]')
        page.wait_text("Rows 1 to 24 of 300 tasks")
        page.click('[data-key="rows-after"]')
        page.wait_text("Rows 25 to 48 of 300 tasks")
        opened(page, standin, f"#/jobs/{STORY}/proof")
        check(page.count("*") < 2500, f"{page.count('*')} elements for 3,000 epochs")
        page.check_quiet()


def test_a_job_with_parameter_servers():
    with Standin() as standin, Browser() as page:
        opened(page, standin, f"#/jobs/{SERVED}")
        check_equal(page.text("#roles"), "chief 1, workers 2, ps 2, evaluator 1", "the types of its tasks")
        shown = page.text('[data-key="evaluation"]')
        for part in ("of step 1,200", "loss 0.125", "\\x1b[31m\\u202e –"):
            check_in(part, shown, "what the evaluator reported")
        opened(page, standin, f"#/jobs/{STORY}")
        check_equal(page.count('#roles, [data-key="evaluation"]'), 0, "of a job without")
        check_in("s3://results/deep/", page.text("#outputs"), "where its outputs are")
        check(page.text("#outputs").endswith(f"/{STORY}"), page.text("#outputs"))
        opened(page, standin, f"#/jobs/{SERVED}")
        check_equal(page.count("#outputs"), 0, "of a job whose outputs the coordinator keeps")
        page.check_quiet()


def test_320_pixels():
    with Standin() as standin, Browser(width=320) as page:
        for view in each_view(page, standin):
            wide, inner = page.run("return [document.documentElement.scrollWidth, innerWidth]")
            culprits = page.run("return [...document.querySelectorAll('main *')].filter((e) => "
                                "e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, svg'))"
                                ".slice(0, 3).map((e) => e.outerHTML.slice(0, 200))")
            check(wide <= inner and not culprits, f"{view} is {wide} pixels wide: {culprits}")


# The contrast of each text that can be seen, by WCAG's formula: those beneath 4.5 (3 where it is large).
CONTRAST = """
const channels = (text) => { const canvas = new OffscreenCanvas(1, 1).getContext("2d"); canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
  .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => { for (let e = element; e; e = e.parentElement) { const back = channels(
  getComputedStyle(e).backgroundColor); if (back[3] > 250) return back; } return channels("white"); };
const low = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walk.nextNode(); node; node = walk.nextNode()) {
  const element = node.parentElement;
  if (!node.data.trim() || !element.getClientRects().length) continue;
  if (element.closest(".unseen, .skip, dialog, noscript, option")) continue;
  const style = getComputedStyle(element);
  const ink = light(channels(element instanceof SVGElement ? style.fill : style.color));
  const back = light(behind(element instanceof SVGElement ? element.closest("svg").parentElement : element));
  const contrast = (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05);
  const name = element.className.baseVal ?? element.className;
  if (contrast < 4.5) low.push(`${contrast.toFixed(2)}: ${node.data.slice(0, 40)} (${name})`);
}
return low.slice(0, 5);
"""


def test_contrast_in_the_light_and_in_the_dark():
    with Standin() as standin:
        backs = []
        for dark in (False, True):
            with Browser(dark=dark) as page:
                for view in each_view(page, standin):
                    check_equal(page.run(CONTRAST), [], f"low contrast in {view}, {'dark' if dark else 'light'}")
                backs.append(page.run("return getComputedStyle(document.body).backgroundColor"))
        check(backs[0] != backs[1], "the dark has colours of its own")


def test_the_keyboard_reaches_the_logs():
    from selenium.webdriver.common.keys import Keys
    with Standin() as standin, Browser() as page:
        opened(page, standin, "")
        page.press(Keys.TAB)
        check_equal(page.run("return document.activeElement.className"), "skip", "the first stop skips to the content")
        page.press("j", "j")
        focus = page.run("const s = getComputedStyle(document.activeElement); return [document.activeElement.hash,"
                         " s.outlineStyle, parseFloat(s.outlineWidth)]")
        check_equal(focus, [f"#/jobs/{STORY}", "solid", 2], "the second row has the focus, and shows it")
        page.press(Keys.ENTER)
        page.wait_text("steps undone", "main")
        page.press("3")
        page.wait_text("line 199 of task 0", ".log")
        check_equal(page.run("return location.hash"), f"#/jobs/{STORY}/logs", "the address names what is shown")
        page.press("/")
        page.press("line 42 ")
        page.wait_text("1 line with")
        page.press("?")
        check(not page.run("return document.getElementById('dialog').open"), "in a text field ? is a character")
        page.run("document.activeElement.blur()")
        page.press("?")
        page.wait_text("the list of workers", "#dialog")
        page.press(Keys.ESCAPE)
        wait_for("the dialog is closed", lambda: not page.run("return document.getElementById('dialog').open"))
        page.press("w")
        page.wait_text("w0000 to w0099")
        page.press("g")
        page.wait_text("Jobs running")
        page.check_quiet()


def test_a_key_right_after_a_dialog_closes():
    """Until the next picture its button has the focus still."""
    with Standin() as standin, Browser() as page:
        opened(page, standin, "")
        page.press("?")
        page.wait_text("the list of workers", "#dialog")
        had, hash_ = page.run("const dialog = document.getElementById('dialog'); const key = () => "
                              "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'w', bubbles: "
                              "true})); key(); const before = location.hash; dialog.close(); key(); "
                              "return [before, location.hash]")
        check_equal(had, "", "a key in the dialog")
        check_equal(hash_, "#/workers", "a key behind it")


def test_charts_and_the_timeline_are_read_by_keys():
    from selenium.webdriver.common.keys import Keys
    with Standin() as standin, Browser() as page:
        opened(page, standin, f"#/jobs/{STORY}/curves")
        page.wait_count("svg.chart", 3)
        check_equal(page.count('[data-key="card/loss"] .band'), 1, "the band of merged values")
        check_equal(page.count('[data-key="card/loss"] .gap'), 1, "crosses where a value is not finite")
        check_equal(page.count('[data-key="card/loss"] line.mark'), 2, "marks of generations")
        page.run("document.querySelector('svg.chart').focus()")
        page.press(Keys.HOME)
        check_in("0.5 to 2 in steps 1 to 64", page.text('[data-key="card/loss"] .readout'), "the first bucket is read")
        check_in("0.5 to 2 in steps 1 to 64", page.text("#announcer"), "and announced")
        page.press(Keys.END, Keys.ARROW_LEFT)
        check_in("step 899", page.text('[data-key="card/loss"] .readout'), "the last but one")
        page.click('[data-key="log"]')
        wait_for("the scale is by magnitude", lambda: "0.1" in page.texts('[data-key="card/rate"] text.axis'))
        page.click('[data-key="together"]')
        page.wait_count("svg.chart", 1)
        check_equal(page.count(".chart .curve:not(.key .curve)"), 2, "both lines with positive values are in one chart")
        opened(page, standin, f"#/jobs/{STORY}")
        page.wait_count("svg.timeline .lost", 2)
        names = (".undone", ".stall", ".checkpoint", ".generation")
        shapes = {name: page.count(f"svg.timeline {name}") for name in names}
        check_equal(shapes, {".undone": 1, ".stall": 1, ".checkpoint": 2, ".generation": 3}, "shapes of the picture")
        page.run("document.querySelector('svg.timeline').focus()")
        page.press(Keys.END)
        check_in("3 tasks begin again at step 700; 40 steps undone", page.text(".timeline-box .readout"), "the newest")
        page.press(Keys.HOME, Keys.ARROW_RIGHT)
        check_in("Placed", page.text("#announcer"), "the second event is announced")
        page.click('[data-key="step"]')
        wait_for("a row for each generation", lambda: page.count("svg.timeline .rail") == 3)
        check_equal(page.count("svg.timeline .undone"), 1, "steps that were done again")
        page.driver.back()
        page.wait_count("svg.timeline .lost", 2)
        page.check_quiet()


def test_a_coordinator_that_is_away():
    with Standin() as standin, Browser() as page:
        opened(page, standin, "")
        standin.stop()
        page.wait_text("does not answer", "#banner")
        check_equal(page.count("tbody tr"), 50, "what was known stays")
        standin.start()
        page.wait_count("#banner .banner", 0)


def test_a_hidden_tab_asks_nothing():
    with Standin() as standin, Browser() as page:
        opened(page, standin, f"#/jobs/{STORY}")
        page.asked()
        page.run("Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
                 "document.dispatchEvent(new Event('visibilitychange')); window.hiddenSince = performance.now()")
        before = len(page.asked())
        wait_for("a few seconds pass in the tab", lambda: page.run("return performance.now() - hiddenSince > 2500"))
        check_equal(page.asked()[before:], [], "requests of a hidden tab")
        page.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        wait_for("it asks again", lambda: len(page.asked()) > before)
        check(not any("/logs?" in url for url in page.asked()), "logs are asked for only where they are shown")


def test_it_asks_as_seldom_as_the_coordinator_says():
    with Standin() as standin, Browser() as page:
        standin.poll_ms = 3_600_000
        opened(page, standin, f"#/jobs/{STORY}")
        wait_for("each was asked for", lambda: len(polls(page.asked())) >= 2)
        page.run("window.askedSince = performance.now()")
        wait_for("a few seconds pass in the tab", lambda: page.run("return performance.now() - askedSince > 2500"))
        asked = polls(page.asked())
        check_equal(sorted(asked), sorted(set(asked)), "none is asked for again")


def polls(urls):
    return [url for url in urls if "/api/" in url]


def test_actions_are_confirmed_and_need_a_role():
    with Standin() as standin, Browser() as page:
        opened(page, standin, f"#/jobs/{STORY}")
        page.click('[data-key="cancel"]')
        page.wait_text("cannot be undone", "#dialog")
        focused = page.run("return document.activeElement.textContent")
        check_equal(focused, "Let it run", "the harmless one has the focus")
        page.click("#dialog button")
        check_equal(standin.posted, [], "nothing was asked for")
        page.click('[data-key="cancel"]')
        page.click("#dialog button.strong")
        wait_for("it is asked for", lambda: standin.posted)
        check_equal(standin.posted[0][:2], (f"/api/jobs/{STORY}/cancel", "application/json"), "the request")
        opened(page, standin, "#/workers/w0001")
        page.click('[data-key="drain"]')
        page.click("#dialog button.strong")
        wait_for("the drain is asked for", lambda: len(standin.posted) == 2)
        check_equal(standin.posted[1][0], "/api/workers/w0001/drain", "the request")
        standin.may = False
        wait_for("no action is offered any more", lambda: page.count('[data-key="drain"]') == 0)
        page.check_quiet()


def test_a_token_leaves_the_address():
    with Standin() as standin, Browser() as page:
        page.open(standin.url + "#/token=abc.def-1")
        page.wait_text("Jobs running")
        check_equal(page.run("return location.hash"), "#/jobs", "the address")
        wait_for("the token came in a header", lambda: "Bearer abc.def-1" in standin.tokens)
        check(not any("abc.def" in url for url in page.asked()), "the token is in no address that was asked for")


def test_readers_of_screens_and_motion():
    with Standin() as standin, Browser() as page:
        for view in each_view(page, standin):
            wrong = page.run("""
                const wrong = [...document.querySelectorAll("th:not([scope]), img:not([alt]), svg:not([aria-hidden])" +
                  ":not([aria-label]), section:not([aria-label])")].map((e) => e.outerHTML.slice(0, 80));
                for (const one of document.querySelectorAll("input, select, button, a")) {
                  const name = one.getAttribute("aria-label") ?? one.closest("label")?.textContent ?? one.textContent;
                  if (!name.trim()) wrong.push(one.outerHTML.slice(0, 80));
                }
                for (const landmark of ["header", "nav[aria-label]", "main", "[aria-live]"])
                  if (!document.querySelector(landmark)) wrong.push(landmark);
                return wrong""")
            check_equal(wrong, [], f"what has no name in {view}")
        opened(page, standin, f"#/jobs/{STORY}")
        page.media("prefers-reduced-motion", "no-preference")
        moves = "return getComputedStyle(document.querySelector('h1 + .badge .icon')).animationName"
        check_equal(page.run(moves), "breathe", "a running job's mark moves")
        page.media("prefers-reduced-motion", "reduce")
        check_equal(page.run(moves), "none", "unless the reader wants less motion")


if __name__ == "__main__":
    run(globals())
