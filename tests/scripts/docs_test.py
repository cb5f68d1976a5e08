"""README.md, CONTRIBUTING.md and docs/*.md: paths exist, no text has the id of a commit, the
glossary is used. All pages: links lead somewhere.

usage: python3 tests/scripts/docs_test.py
"""
import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PAGES = ["README.md", "CONTRIBUTING.md"] + sorted(os.path.relpath(path, ROOT) for path in glob.glob(f"{ROOT}/docs/*.md"))
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FOLDERS = "apps|cmake|data|fft|framework|layers|models|python|scripts|tests"
ALL_PAGES = PAGES + sorted(os.path.relpath(path, ROOT) for top in FOLDERS.split("|") + ["docs/*"]
                           for path in glob.glob(f"{ROOT}/{top}/**/*.md", recursive=True))
COMMIT_ID = re.compile(r"(?<![\w#/])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7}(?!\w)")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def anchors(text):
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for page in ALL_PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", read(page))):
                if re.match(r"\w+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                with self.subTest(page=page, link=link):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, target)))
                    if anchor:
                        self.assertIn(anchor, anchors(read(target)))

    def test_no_commit_ids(self):
        for page in PAGES:
            with self.subTest(page=page):
                self.assertEqual(COMMIT_ID.findall(CODE.sub("", read(page))), [])

    def test_sources_exist(self):
        """A path in backticks that names a source file must exist."""
        for page in PAGES:
            for path in re.findall(rf"`((?:{FOLDERS})/[\w./]+\.(?:h|cpp|cu|cmake|py|yaml))`", read(page)):
                if path.startswith(("layers/elu", "layers/swish", "tests/layers/elu", "tests/layers/swish")) or "pointwise" in path:
                    continue  # the examples of docs/extending.md
                with self.subTest(page=page, path=path):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, path)))

    def test_glossary_is_short_and_used(self):
        terms = re.findall(r"^\| \*\*(.+?)\*\* \|", read("docs/glossary.md"), re.MULTILINE)
        self.assertTrue(0 < len(terms) <= 25, len(terms))
        files = [os.path.join(folder, name) for top in FOLDERS.split("|") + ["docs"] for folder, _, names in os.walk(f"{ROOT}/{top}")
                 for name in names if name.endswith((".md", ".h", ".cpp", ".cu", ".py"))]
        text = "\n".join(map(read, files)).lower()
        for term in terms:
            with self.subTest(term=term):
                self.assertGreaterEqual(text.count(term), 10)

    def test_readme_has_at_most_150_lines(self):
        self.assertLessEqual(read("README.md").count("\n"), 150)


if __name__ == "__main__":
    unittest.main()
