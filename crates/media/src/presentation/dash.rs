//! Manifests of DASH (ISO/IEC 23009-1) as a player needs them: the bitrates of one period's video, and their segments
//! by template (number, time, timeline), by list, or by the index of a file.
//!
//! The syntax is that of `dash_mpd_core`; here is what is made of it, and what is refused. Addresses of templates are in
//! `template`.

mod template;
mod timing;

use std::time::Duration;

use dash_mpd_core::{
    AdaptationSet, BaseURL, Initialization, MPD, Period, Representation, SegmentBase, SegmentList,
    SegmentTemplate,
};
use swiftwater_units::Bandwidth;
use url::Url;

use self::template::{Template, Values};
use self::timing::{Span, spans};
use super::{
    AddressRoom, ByteRange, IndexedFile, Level, PresentationError, Resource, Source, Variant,
    resolve,
};
use crate::streaming::Rendition;

/// How many bytes at the beginning of a text are searched for the manifest's element.
const PROLOG: usize = 4096;

/// True if a text looks like a manifest.
pub(super) fn is_manifest(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let prolog = text.char_indices().take_while(|(at, _)| *at < PROLOG);
    let end = prolog.last().map_or(0, |(at, c)| at + c.len_utf8());
    text.starts_with('<') && text[..end].contains("<MPD")
}

/// The bitrates that the manifest in `text` describes, which came from `url`.
pub(super) fn parse(url: &Url, text: &str) -> Result<Vec<Variant>, PresentationError> {
    let manifest = dash_mpd_core::parse(text);
    let manifest = manifest.map_err(|error| {
        let reason = error.to_string();
        PresentationError::Manifest(reason.lines().next().unwrap_or_default().to_owned())
    })?;
    if manifest.mpdtype.as_deref() == Some("dynamic") {
        return Err(PresentationError::Live);
    }
    let [period] = manifest.periods.as_slice() else {
        return Err(PresentationError::Periods(manifest.periods.len()));
    };
    let set = period.adaptations.iter().find(|set| is_video(set));
    let set = set.ok_or(PresentationError::NoVariants)?;
    let url = based(&based(url, &manifest.base_url)?, &period.BaseURL)?;
    let url = based(&url, &set.BaseURL)?;
    let end = end_of(&manifest, period);
    let mut room = AddressRoom::WHOLE;
    let mut all = Vec::new();
    for representation in &set.representations {
        let rate = representation.bandwidth.unwrap_or_default();
        if rate == 0 {
            return Err(PresentationError::NoRate);
        }
        if !set.ContentProtection.is_empty() || !representation.ContentProtection.is_empty() {
            return Err(PresentationError::Encrypted);
        }
        let described = Described {
            url: based(&url, &representation.BaseURL)?,
            end,
            period,
            set,
            representation,
        };
        let height = representation.height.or(set.height);
        all.push(Variant {
            rendition: Rendition {
                rate: Bandwidth::from_bps(rate),
                height: height.and_then(|height| u32::try_from(height).ok()),
            },
            source: described.source(&mut room)?,
        });
    }
    Variant::sorted(all)
}

/// True if a set holds the video: the first one is played.
fn is_video(set: &AdaptationSet) -> bool {
    let representation = set.representations.first();
    let of = |set: Option<&String>, own: Option<&String>| set.or(own).cloned().unwrap_or_default();
    let content = of(
        set.contentType.as_ref(),
        representation.and_then(|it| it.contentType.as_ref()),
    );
    let mime = of(
        set.mimeType.as_ref(),
        representation.and_then(|it| it.mimeType.as_ref()),
    );
    let is_named = content == "video" || mime.starts_with("video/");
    // Of thumbnails and trick modes, the properties say that others must not play them (section 5.8.4.8).
    is_named && set.essential_property.is_empty() && !set.representations.is_empty()
}

/// The address that references are resolved against: the first of several alternatives.
fn based(url: &Url, bases: &[BaseURL]) -> Result<Url, PresentationError> {
    match bases.first() {
        Some(base) => resolve(url, &base.base),
        None => Ok(url.clone()),
    }
}

/// How long the period lasts, if the manifest says it.
fn end_of(manifest: &MPD, period: &Period) -> Option<Duration> {
    let start = period.start.unwrap_or_default();
    let whole = manifest.mediaPresentationDuration;
    let rest = whole.and_then(|whole| whole.checked_sub(start));
    period.duration.or(rest)
}

/// One bitrate with what it inherits.
struct Described<'a> {
    url: Url,
    end: Option<Duration>,
    period: &'a Period,
    set: &'a AdaptationSet,
    representation: &'a Representation,
}

impl Described<'_> {
    /// A representation's own description comes before that of its set, and that before the period's (section
    /// 5.3.9.1); templates inherit each attribute. Addresses take their bytes of `room`.
    fn source(&self, room: &mut AddressRoom) -> Result<Source, PresentationError> {
        let (period, set, own) = (self.period, self.set, self.representation);
        let templates = [
            &own.SegmentTemplate,
            &set.SegmentTemplate,
            &period.SegmentTemplate,
        ];
        let templates: Vec<&SegmentTemplate> = templates.into_iter().flatten().collect();
        let lists = [&own.SegmentList, &set.SegmentList, &period.SegmentList];
        let bases = [&own.SegmentBase, &set.SegmentBase, &period.SegmentBase];
        if !templates.is_empty() {
            self.by_template(&templates, room).map(Source::Level)
        } else if let Some(list) = lists.into_iter().flatten().next() {
            self.by_list(list, room).map(Source::Level)
        } else if let Some(base) = bases.into_iter().flatten().next() {
            self.by_index(base).map(Source::Index)
        } else {
            Err(PresentationError::NoAddresses)
        }
    }

    fn by_template(
        &self,
        templates: &[&SegmentTemplate],
        room: &mut AddressRoom,
    ) -> Result<Level, PresentationError> {
        fn first<'a, T>(
            templates: &[&'a SegmentTemplate],
            get: impl Fn(&'a SegmentTemplate) -> Option<T>,
        ) -> Option<T> {
            templates.iter().find_map(|template| get(template))
        }
        let media = first(templates, |it| it.media.as_deref());
        let media = Template::parse(media.ok_or(PresentationError::NoAddresses)?)?;
        let span = Span {
            timescale: first(templates, |it| it.timescale).unwrap_or(1),
            duration: first(templates, |it| it.duration),
            timeline: first(templates, |it| it.SegmentTimeline.as_ref()),
            offset: first(templates, |it| it.presentationTimeOffset).unwrap_or(0),
            end: self.end,
        };
        let first_number = first(templates, |it| it.startNumber).unwrap_or(1);
        let last_number = first(templates, |it| it.endNumber);
        let count = last_number.map(|last| last.saturating_add(1).saturating_sub(first_number));
        let mut values = Values {
            id: self.representation.id.as_deref().unwrap_or_default(),
            bandwidth: self.representation.bandwidth.unwrap_or_default(),
            number: first_number,
            time: 0,
        };
        let header = if let Some(text) = first(templates, |it| it.initialization.as_deref()) {
            Some(Resource {
                url: resolve(&self.url, &Template::parse(text)?.fill(&values))?,
                range: None,
            })
        } else {
            let header = first(templates, |it| it.Initialization.as_ref());
            header.map(|header| self.header(header)).transpose()?
        };
        let count = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let mut segments = Vec::new();
        for (time, duration) in spans(&span, count)? {
            values.time = time;
            let resource = Resource {
                url: resolve(&self.url, &media.fill(&values))?,
                range: None,
            };
            room.take(&resource.url)?;
            segments.push((resource, duration));
            values.number = values.number.saturating_add(1);
        }
        Ok(Level { header, segments })
    }

    fn by_list(
        &self,
        list: &SegmentList,
        room: &mut AddressRoom,
    ) -> Result<Level, PresentationError> {
        let span = Span {
            timescale: list.timescale.unwrap_or(1),
            duration: list.duration.map(|duration| duration as f64),
            timeline: list.SegmentTimeline.as_ref(),
            offset: 0,
            end: self.end,
        };
        let mut segments = Vec::new();
        let urls = &list.segment_urls;
        for ((_, duration), entry) in spans(&span, Some(urls.len()))?.into_iter().zip(urls) {
            let url = match &entry.media {
                Some(media) => resolve(&self.url, media)?,
                None => self.url.clone(),
            };
            room.take(&url)?;
            let range = entry.mediaRange.as_deref().map(byte_range).transpose()?;
            segments.push((Resource { url, range }, duration));
        }
        if segments.len() != urls.len() {
            return Err(PresentationError::Duration(segments.len()));
        }
        let header = list.Initialization.as_ref();
        let header = header.map(|header| self.header(header)).transpose()?;
        Ok(Level { header, segments })
    }

    fn by_index(&self, base: &SegmentBase) -> Result<IndexedFile, PresentationError> {
        let range = base.indexRange.as_deref();
        let index = byte_range(range.ok_or(PresentationError::NoAddresses)?)?;
        let header = base.Initialization.as_ref();
        let header = header.and_then(|header| header.range.as_deref());
        Ok(IndexedFile {
            url: self.url.clone(),
            header: header.map(byte_range).transpose()?,
            index,
        })
    }

    fn header(&self, header: &Initialization) -> Result<Resource, PresentationError> {
        let url = match &header.sourceURL {
            Some(source) => resolve(&self.url, source)?,
            None => self.url.clone(),
        };
        let range = header.range.as_deref().map(byte_range).transpose()?;
        Ok(Resource { url, range })
    }
}

/// `first-last`, both included.
fn byte_range(text: &str) -> Result<ByteRange, PresentationError> {
    let range = text.split_once('-').and_then(|(first, last)| {
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let len = last.checked_sub(first)?.checked_add(1)?;
        Some((first, len))
    });
    range.ok_or_else(|| PresentationError::RangeSyntax(text.to_owned()))
}
