//! Sentences that several formats share.

use super::{Figure, Kernel, Report, Status};
use crate::cell::Cell;
use crate::policy::Judgement;
use crate::verdict::Verdict;

/// How much a kernel matters to a reader, whatever the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing to say.
    None,
    /// It got better.
    Note,
    /// It rose and is accepted, or it came or went and that is no fault.
    Warning,
    /// A regression.
    Failure,
    /// Not trustworthy.
    Error,
}

impl Kernel {
    /// What is wrong with the kernel outweighs what moved in it.
    pub(super) fn level(&self) -> Level {
        let allowed = || self.judged().any(|figure| matches!(figure.judgement, Judgement::Allowed(_)));
        match self.status {
            _ if !self.problems.is_empty() => Level::Error,
            Status::NotTrustworthy => Level::Error,
            Status::Worse => Level::Failure,
            Status::New | Status::Gone => Level::Warning,
            Status::Changed if allowed() => Level::Warning,
            Status::Improved => Level::Note,
            Status::Changed | Status::Listed | Status::Unchanged => Level::None,
        }
    }

    /// The figures of a kernel whose sides were compared.
    pub(super) fn compared_figures(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|_| self.is_compared())
    }

    fn is_compared(&self) -> bool {
        matches!(self.status, Status::Unchanged | Status::Changed | Status::Improved | Status::Worse)
    }

    /// The figures that moved and can fail; the waves, where they can, are the last.
    pub(super) fn judged(&self) -> impl Iterator<Item = &Figure> {
        let waves = Some(&self.occupancy).filter(|_| self.is_compared());
        self.compared_figures().chain(waves).filter(|figure| figure.is_judged())
    }

    /// The waves per execution unit, where they are known on both sides and moved.
    pub(super) fn moved_waves(&self) -> Option<&Figure> {
        Some(&self.occupancy).filter(|waves| self.is_compared() && waves.delta().is_some_and(|delta| delta != 0))
    }

    /// One line: what is wrong, or what moved and can fail.
    pub(super) fn summary(&self) -> String {
        if let Some(first) = self.problems.first() {
            return match self.problems.len() - 1 {
                0 => first.clone(),
                more => format!("{first} (and {more} more)"),
            };
        }
        let mut figures: Vec<String> =
            self.judged().map(|figure| format!("{} {}", figure.column.name(), figure.change())).collect();
        if let (Some(waves), false) = (self.moved_waves().filter(|waves| !waves.is_judged()), figures.is_empty()) {
            figures.push(format!("{} {}", waves.column.name(), waves.arrow()));
        }
        match (figures.is_empty(), self.status) {
            (false, _) => figures.join(", "),
            (true, Status::New) => "only after".into(),
            (true, Status::Gone) => "only before".into(),
            (true, Status::NotTrustworthy) => "not everything is known".into(),
            (true, _) => "no figure that can fail moved".into(),
        }
    }
}

impl Figure {
    /// Whether it moved and can fail.
    pub(super) fn is_judged(&self) -> bool {
        !matches!(self.judgement, Judgement::Same | Judgement::Informational)
    }

    /// `96->284 (+188)`, or the one value where nothing moved.
    pub(super) fn change(&self) -> String {
        let arrow = self.arrow();
        match self.delta() {
            Some(delta) if delta != 0 => format!("{arrow} ({delta:+})"),
            _ => arrow,
        }
    }

    /// `96->284`, or the one value where nothing moved.
    pub(super) fn arrow(&self) -> String {
        let shown = |cell: &Option<Cell>| cell.as_ref().map(Cell::show);
        match (shown(&self.before), shown(&self.after)) {
            (Some(before), Some(after)) if before != after => format!("{before}->{after}"),
            (_, Some(after)) => after,
            (Some(before), None) => before,
            (None, None) => String::new(),
        }
    }
}

impl Report {
    /// What of the verdict no kernel and no problem explains. A format that lists only those would look fine without it.
    pub(super) fn unexplained(&self) -> Option<&'static str> {
        let any = |level| self.kernels.iter().any(|kernel| kernel.level() == level);
        match self.verdict {
            Verdict::Ok => None,
            Verdict::Regression => (!any(Level::Failure)).then_some("the verdict is REGRESSION"),
            Verdict::NotTrustworthy if any(Level::Error) || !self.input_problems.is_empty() => None,
            Verdict::NotTrustworthy => Some("the answer is not trustworthy: nothing was compared"),
        }
    }
}

/// Reduces control characters and what XML has no place for to something visible, for every format.
pub fn plain(text: &str) -> String {
    crate::printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// `1 kernel`, `2 kernels`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
