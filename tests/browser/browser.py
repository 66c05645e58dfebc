# SPDX-License-Identifier: Apache-2.0
"""Chromium without a screen, driven by Debian's chromium-driver and python3-selenium: what a test asks of a page."""
import json
import os
import shutil
import tempfile

from testing import Failure, check_equal, skip, wait_for

CHROMIUM = os.environ.get("CADRE_TEST_CHROMIUM", "/usr/bin/chromium")
DRIVER = os.environ.get("CADRE_TEST_CHROMEDRIVER", "/usr/bin/chromedriver")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
         "--disable-extensions", "--no-first-run", "--disable-background-networking", "--disable-component-update"]


class Browser:
    """with Browser(width=320, dark=True) as page: page.open(url) ... `identity`: what it shows a server, and trusts."""

    def __init__(self, width=1280, height=900, dark=False, identity=None):
        try:
            from selenium import webdriver
            from selenium.common.exceptions import WebDriverException
        except ImportError:
            skip("python3-selenium is not installed")
        for path in (CHROMIUM, DRIVER):
            if not shutil.which(path):
                skip(f"{path} is not installed (packages chromium and chromium-driver)")
        self.folder = tempfile.mkdtemp(prefix="cadre-browser-")
        if identity is not None:
            identity.install(self.folder)
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in [*FLAGS, f"--user-data-dir={self.folder}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        try:
            service = webdriver.chrome.service.Service(DRIVER, env=os.environ | {"HOME": self.folder})
            self.driver = webdriver.Chrome(service=service, options=options)
        except WebDriverException as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        self.requests = []
        self.resize(width, height)
        self.media("prefers-color-scheme", "dark" if dark else "light")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()
        shutil.rmtree(self.folder, ignore_errors=True)

    def resize(self, width, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def media(self, name, value):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": name, "value": value}]})

    def open(self, url):
        self.driver.get(url)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def module(self, script, *arguments):
        """Runs a script in which `await import("/assets/...")` may stand; returns what it returns."""
        wrapped = ("const done = arguments[arguments.length - 1]; const given = [...arguments].slice(0, -1);"
                   f"(async (...args) => {{ {script} }})(...given).then((value) => done([true, value]),"
                   " (error) => done([false, String(error.stack)]));")
        good, value = self.driver.execute_async_script(wrapped, *arguments)
        if not good:
            raise Failure(f"the script failed: {value}")
        return value

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def count(self, selector):
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def wait_text(self, text, selector="body"):
        wait_for(f"{text!r} is in {selector}", lambda: text in self.text(selector))

    def wait_count(self, selector, wanted):
        wait_for(f"there are {wanted} of {selector}", lambda: self.count(selector) == wanted)

    def click(self, selector):
        wait_for(f"{selector} is there", lambda: self.count(selector))
        self.run("document.querySelector(arguments[0]).click()", selector)

    def press(self, *keys):
        """Keys as a user presses them, at what has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def screenshot(self, path):
        self.driver.save_screenshot(path)

    def complaints(self):
        """What the browser logged: errors of scripts, refused loads, violations of the policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if "ERR_CONNECTION_REFUSED" not in entry["message"] and "ERR_EMPTY_RESPONSE" not in entry["message"]]

    def check_quiet(self):
        check_equal(self.complaints(), [], "the browser's log")

    def asked(self):
        """The addresses of all requests since the start."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        return self.requests
