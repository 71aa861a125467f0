//! Relative links of the pages lead to files that exist, and to headings of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn events(page: &str) -> Parser<'_> {
    Parser::new_ext(page, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES)
}

/// Destinations of the links and images of a page. Code has none.
fn links(page: &str) -> Vec<String> {
    events(page)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url.into_string())
            }
            _ => None,
        })
        .collect()
}

/// The anchors of a page's headings, as GitHub makes them: lower case, hyphens for spaces, without punctuation; a
/// number after those that there are already.
fn anchors(page: &str) -> Vec<String> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    let mut heading: Option<String> = None;
    for event in events(page) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let before = taken.entry(slug.clone()).or_default();
                found.push(match *before {
                    0 => slug,
                    number => format!("{slug}-{number}"),
                });
                *before += 1;
            }
            _ => {}
        }
    }
    found
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter_map(|c| match c {
        ' ' | '-' => Some('-'),
        '_' => Some('_'),
        c => c.is_alphanumeric().then_some(c),
    });
    kept.collect()
}

/// What is wrong with a link of `page`, a path; `None` for one that is right or leads elsewhere.
fn fault(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        page.to_owned()
    } else {
        page.parent()?.join(path)
    };
    if !target.exists() {
        return Some(format!("{}: no file {path}", page.display()));
    }
    if anchor.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = fs::read_to_string(&target).expect("text");
    let exists = anchors(&text).iter().any(|known| known == anchor);
    (!exists).then(|| format!("{}: no heading for {link}", page.display()))
}

/// Markdown files directly in a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

#[test]
fn links_of_pages_lead_somewhere() {
    let root = root();
    let mut folders = vec![root.clone(), root.join("docs")];
    for parent in ["crates", "benches", "interop"] {
        let entries = fs::read_dir(root.join(parent)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        folders.extend(paths.filter(|path| path.is_dir()));
    }
    let (mut faults, mut count) = (Vec::new(), 0);
    for page in folders.iter().flat_map(|folder| pages(folder)) {
        for link in links(&fs::read_to_string(&page).expect("text")) {
            count += 1;
            faults.extend(fault(&page, &link));
        }
    }
    assert!(count > 50, "{count}");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn anchors_are_those_of_github() {
    let page = "# A `serve` page: HTTP/3 & more\n\n## Limits\n\n```sh\n# no heading\n```\n\nLimits\n------\n\n### x_y-z (two)\n";
    assert_eq!(
        anchors(page),
        [
            "a-serve-page-http3--more",
            "limits",
            "limits-1",
            "x_y-z-two"
        ]
    );
}

#[test]
fn links_in_code_are_no_links() {
    let page = "[a](b.md#c) `[d](e.md)` ![f](g.png) [h]\n\n```\n[i](j.md)\n```\n\n[h]: k.md\n";
    assert_eq!(links(page), ["b.md#c", "g.png", "k.md"]);
}

#[test]
fn what_is_missing_is_reported() {
    let page = root().join("docs/serve.md");
    assert_eq!(fault(&page, "https://example.com/none"), None);
    assert_eq!(fault(&page, "serve.md#limits"), None);
    assert_eq!(fault(&page, "#limits"), None);
    assert!(fault(&page, "none.md").is_some());
    assert!(fault(&page, "serve.md#none").is_some());
    assert!(fault(&page, "#none").is_some());
}
