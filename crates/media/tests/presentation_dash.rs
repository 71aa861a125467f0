//! Manifests of DASH as packagers write them, and what is refused.

use std::time::Duration;

use swiftwater_media::presentation::{
    Description, Level, PresentationError, Source, Variant, parse,
};
use url::Url;

fn url() -> Url {
    "https://host/video/manifest.mpd?token=1".parse().unwrap()
}

fn manifest(attributes: &str, period: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- made by a packager -->\n\
         <MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" {attributes}>{period}</MPD>"
    )
}

fn variants(text: &str) -> Result<Vec<Variant>, PresentationError> {
    match parse(&url(), text.as_bytes())? {
        Description::Variants(variants) => Ok(variants),
        Description::Level(_) => panic!("a playlist"),
    }
}

fn level(variant: &Variant) -> &Level {
    match &variant.source {
        Source::Level(level) => level,
        other => panic!("{other:?}"),
    }
}

fn paths(level: &Level) -> Vec<&str> {
    level
        .segments
        .iter()
        .map(|(segment, _)| segment.url.path())
        .collect()
}

fn millis(level: &Level) -> Vec<u128> {
    level
        .segments
        .iter()
        .map(|(_, time)| time.as_millis())
        .collect()
}

#[test]
fn numbered_segments_of_the_video_in_ascending_bitrates() {
    let period = "<Period><AdaptationSet mimeType=\"audio/mp4\"><Representation id=\"s\" bandwidth=\"64000\"/>\
        </AdaptationSet><AdaptationSet mimeType=\"video/mp4\">\
        <SegmentTemplate media=\"$RepresentationID$/$Number%03d$.m4s\" initialization=\"$RepresentationID$/init.mp4\" \
        duration=\"8000\" timescale=\"2000\" startNumber=\"5\"/>\
        <Representation id=\"high\" bandwidth=\"3000000\" height=\"720\"/>\
        <Representation id=\"low\" bandwidth=\"500000\" height=\"360\"/>\
        </AdaptationSet></Period>";
    let text = manifest("mediaPresentationDuration=\"PT10S\"", period);
    let variants = variants(&text).unwrap();
    let rates = variants.iter().map(|it| it.rendition.rate.as_bps());
    assert_eq!(rates.collect::<Vec<_>>(), [500_000, 3_000_000]);
    assert_eq!(variants[0].rendition.height, Some(360));
    let low = level(&variants[0]);
    let header = low.header.as_ref().unwrap();
    assert_eq!(header.url.path(), "/video/low/init.mp4");
    let expected = [
        "/video/low/005.m4s",
        "/video/low/006.m4s",
        "/video/low/007.m4s",
    ];
    assert_eq!(paths(low), expected);
    assert_eq!(millis(low), [4_000, 4_000, 2_000]);
}

#[test]
fn timelines_repeat_and_give_times() {
    let period = "<Period duration=\"PT11S\"><BaseURL>../media/</BaseURL><AdaptationSet contentType=\"video\">\
        <SegmentTemplate timescale=\"10\" presentationTimeOffset=\"100\" media=\"t$Time$-$Bandwidth$-$$.m4s\">\
        <SegmentTimeline><S t=\"100\" d=\"20\" r=\"1\"/><S d=\"10\"/><S d=\"25\" r=\"-1\"/></SegmentTimeline>\
        </SegmentTemplate><Representation id=\"v\" bandwidth=\"1000\"/></AdaptationSet></Period>";
    let variants = variants(&manifest("type=\"static\"", period)).unwrap();
    let level = level(&variants[0]);
    let times = [100, 120, 140, 150, 175, 200];
    let expected = times.map(|time| format!("/media/t{time}-1000-$.m4s"));
    assert_eq!(paths(level), expected);
    assert_eq!(millis(level), [2_000, 2_000, 1_000, 2_500, 2_500, 2_500]);
}

#[test]
fn lists_name_each_segment_or_range() {
    let period = "<Period><AdaptationSet mimeType=\"video/mp4\"><Representation bandwidth=\"1000\">\
        <BaseURL>one.mp4</BaseURL><SegmentList duration=\"2\"><Initialization range=\"0-699\"/>\
        <SegmentURL mediaRange=\"700-1699\"/><SegmentURL media=\"two.mp4\"/></SegmentList>\
        </Representation></AdaptationSet></Period>";
    let variants = variants(&manifest("mediaPresentationDuration=\"PT4S\"", period)).unwrap();
    let level = level(&variants[0]);
    assert_eq!(paths(level), ["/video/one.mp4", "/video/two.mp4"]);
    let ranges: Vec<_> = level.segments.iter().map(|(it, _)| it.range).collect();
    assert_eq!(ranges, [Some((700, 1_000)), None]);
    assert_eq!(level.header.as_ref().unwrap().range, Some((0, 700)));
    assert_eq!(millis(level), [2_000, 2_000]);
}

#[test]
fn a_file_with_an_index() {
    let period = "<Period><AdaptationSet mimeType=\"video/mp4\"><Representation bandwidth=\"1000\">\
        <BaseURL>https://other/v.mp4</BaseURL><SegmentBase indexRange=\"700-899\"><Initialization range=\"0-699\"/>\
        </SegmentBase></Representation></AdaptationSet></Period>";
    let variants = variants(&manifest("", period)).unwrap();
    let Source::Index(file) = &variants[0].source else {
        panic!("no index");
    };
    assert_eq!(file.url.host_str(), Some("other"));
    assert_eq!((file.header, file.index), (Some((0, 700)), (700, 200)));
}

#[test]
fn what_cannot_be_played_is_refused() {
    let set = |inside: &str| {
        format!("<Period><AdaptationSet mimeType=\"video/mp4\">{inside}</AdaptationSet></Period>")
    };
    let with_template = |template: &str| {
        set(&format!(
            "<SegmentTemplate {template}/><Representation id=\"v\" bandwidth=\"1000\"/>"
        ))
    };
    let of = |attributes: &str, period: &str| variants(&manifest(attributes, period)).unwrap_err();
    let good = with_template("media=\"$Number$\" duration=\"2\"");
    let ten = "mediaPresentationDuration=\"PT10S\"";
    assert!(variants(&manifest(ten, &good)).is_ok());
    let live = of("type=\"dynamic\"", &good);
    assert!(matches!(live, PresentationError::Live));
    let two = of(ten, &format!("{good}{good}"));
    assert!(matches!(two, PresentationError::Periods(2)));
    let endless = of("", &good);
    assert!(matches!(endless, PresentationError::Duration(0)));
    let long = of("mediaPresentationDuration=\"P40Y\"", &good);
    assert!(
        matches!(
            long,
            PresentationError::TooManySegments | PresentationError::Duration(_)
        ),
        "{long}"
    );
    for template in ["$Name$", "$Number", "$Number%5d$", "$Number%099d$"] {
        let wrong = of(
            ten,
            &with_template(&format!("media=\"{template}\" duration=\"2\"")),
        );
        assert!(
            matches!(wrong, PresentationError::Template(_)),
            "{template}: {wrong}"
        );
    }
    let times = ["duration=\"0\"", "", "duration=\"2\" timescale=\"0\""];
    for time in times {
        let wrong = of(ten, &with_template(&format!("media=\"$Number$\" {time}")));
        assert!(
            matches!(wrong, PresentationError::Duration(0)),
            "{time}: {wrong}"
        );
    }
    let protected = of(
        ten,
        &set("<ContentProtection schemeIdUri=\"urn:x\"/><Representation bandwidth=\"1\"/>"),
    );
    assert!(matches!(protected, PresentationError::Encrypted));
    let bare = of(ten, &set("<Representation bandwidth=\"1\"/>"));
    assert!(matches!(bare, PresentationError::NoAddresses));
    let without_rate = of(ten, &set("<Representation id=\"v\"/>"));
    assert!(matches!(without_rate, PresentationError::NoRate));
    let sound = "<Period><AdaptationSet mimeType=\"audio/mp4\"><Representation bandwidth=\"1\"/></AdaptationSet></Period>";
    assert!(matches!(of(ten, sound), PresentationError::NoVariants));
    let wrong = of(ten, "<Period");
    assert!(matches!(wrong, PresentationError::Manifest(_)));
}

#[test]
fn a_timeline_without_bounds_ends() {
    let period = "<Period><AdaptationSet mimeType=\"video/mp4\"><SegmentTemplate media=\"$Time$\">\
        <SegmentTimeline><S t=\"0\" d=\"1\" r=\"9000000000000000000\"/></SegmentTimeline></SegmentTemplate>\
        <Representation bandwidth=\"1\"/></AdaptationSet></Period>";
    let error = variants(&manifest("", period)).unwrap_err();
    assert!(matches!(error, PresentationError::TooManySegments));
    let zero = period.replace("d=\"1\"", "d=\"0\"");
    let error = variants(&manifest("", &zero)).unwrap_err();
    assert!(matches!(error, PresentationError::Duration(0)));
}

#[test]
fn numbers_and_addresses_have_bounds() {
    let of = |template: &str, duration: &str| {
        let period = format!(
            "<Period><AdaptationSet mimeType=\"video/mp4\"><SegmentTemplate {template} duration=\"1\"/>\
             <Representation bandwidth=\"1\"/></AdaptationSet></Period>"
        );
        variants(&manifest(
            &format!("mediaPresentationDuration=\"{duration}\""),
            &period,
        ))
    };
    let last = u64::MAX;
    let numbers = format!("media=\"$Number$\" startNumber=\"{last}\" endNumber=\"{last}\"");
    assert!(matches!(
        of(&numbers, "PT5S"),
        Err(PresentationError::NoSegments)
    ));
    let long = "a".repeat(1_000);
    let short = of(&format!("media=\"{long}$Number$\""), "PT1000S").unwrap();
    assert_eq!(level(&short[0]).segments.len(), 1_000);
    let many = of(&format!("media=\"{long}$Number$\""), "PT100000S");
    assert!(matches!(many, Err(PresentationError::TooManySegments)));
}

#[test]
fn segments_of_all_bitrates_become_a_video() {
    let period = "<Period><AdaptationSet mimeType=\"video/mp4\">\
        <SegmentTemplate media=\"$RepresentationID$-$Number$\" duration=\"2\"/>\
        <Representation id=\"a\" bandwidth=\"1000000\"/><Representation id=\"b\" bandwidth=\"2000000\"/>\
        </AdaptationSet></Period>";
    let variants = variants(&manifest("mediaPresentationDuration=\"PT5S\"", period)).unwrap();
    let renditions: Vec<_> = variants.iter().map(|it| it.rendition).collect();
    let levels: Vec<_> = variants.iter().map(|it| level(it).clone()).collect();
    let video = swiftwater_media::presentation::video(&renditions, &levels).unwrap();
    assert_eq!(video.length(), Duration::from_secs(5));
    assert_eq!(video.chunks()[0].bytes, [250_000, 500_000]);
    assert_eq!(video.chunks()[2].bytes, [125_000, 250_000]);
}
