//! Registers that a function preserves (callee-saved).

/// A function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Callee {
    /// A function of a program, by the calling convention.
    Device,
    /// A function of the driver, which preserves more.
    Driver,
    /// The slow path of an expansion, which uses general registers below this number.
    SlowPath(u16),
    /// A function of the same program whose code is known.
    Private(Changes),
}

/// What a function whose code is known may change besides all predicates and the barriers that the
/// calling convention gives up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Changes {
    /// General registers, a bit each.
    pub general: [u64; 4],
    /// Uniform registers below this number.
    pub uniform: u16,
}

impl Changes {
    /// What a function may change of which nothing is known.
    pub const ALL: Changes = Changes { general: [!(1 << 1), u64::MAX, u64::MAX, u64::MAX], uniform: 255 };

    /// What a call may change.
    pub fn of(callee: Callee) -> Changes {
        let mut changes = Changes::default();
        for (file, last) in [("R", 254), ("UR", 254)] {
            let kept: Vec<_> = callee.keeps(file).collect();
            let lost = (0..=last).filter(|number| !kept.iter().any(|run| run.contains(number)));
            lost.for_each(|number| changes.add(file, number));
        }
        changes
    }

    /// Adds a register; those of other files count as changed anyway.
    #[inline]
    pub fn add(&mut self, file: &str, number: u16) {
        match file {
            "R" => self.general[usize::from(number) / 64] |= 1 << (number % 64),
            "UR" => self.uniform = self.uniform.max(number + 1),
            _ => {}
        }
    }

    /// Adds what another one changes.
    pub fn join(&mut self, other: Changes) {
        self.general.iter_mut().zip(other.general).for_each(|(own, other)| *own |= other);
        self.uniform = self.uniform.max(other.uniform);
    }

    /// Number of the highest general register plus one.
    pub fn end(&self) -> u16 {
        let word = self.general.iter().rposition(|word| *word != 0);
        word.map_or(0, |word| 64 * word as u16 + 64 - self.general[word].leading_zeros() as u16)
    }
}

/// What a row says of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    Device,
    Driver,
    SlowPath,
}

/// A run of callee-saved registers of one file, both ends included. Source: `registers.ron`.
#[derive(Debug)]
pub struct Kept {
    pub by: KeptBy,
    pub file: &'static str,
    pub first: u16,
    pub last: u16,
}

impl Callee {
    /// Whether it is a function, which any lanes of a warp may call, and not a slow path.
    pub fn is_function(self) -> bool {
        !matches!(self, Callee::SlowPath(_))
    }

    /// Whether lanes that call it together may go on apart: they do not where it is the driver's,
    /// which holds nothing that another lane waits for, so that all can wait behind the call.
    pub fn parts_lanes(self) -> bool {
        self.is_function() && !matches!(self, Callee::Driver)
    }

    /// The runs of registers of a file that it preserves.
    pub fn keeps<'a>(self, file: &'a str) -> impl Iterator<Item = std::ops::RangeInclusive<u16>> + 'a {
        let (kind, first, changes) = match self {
            Callee::Device => (KeptBy::Device, 255, None),
            Callee::Driver => (KeptBy::Driver, 255, None),
            Callee::SlowPath(first) => (KeptBy::SlowPath, if file == "R" { first } else { 255 }, None),
            Callee::Private(changes) => match file {
                "R" => (KeptBy::Device, 0, Some(changes)),
                "UR" => (KeptBy::Device, changes.uniform, Some(changes)),
                _ => (KeptBy::Device, 255, None),
            },
        };
        let own =
            move |n: &u16| changes.is_none_or(|c| file != "R" || c.general[usize::from(*n) / 64] >> (n % 64) & 1 == 0);
        let rows = KEPT.iter().filter(move |k| changes.is_none() && k.by == kind && k.file == file);
        rows.map(|k| k.first..=k.last).chain((first..255).filter(own).map(|n| n..=n))
    }
}

/// Whether the register of this file and number is preserved across calls of device functions.
#[inline]
pub fn kept_across_calls(file: &str, number: u16) -> bool {
    Callee::Device.keeps(file).any(|run| run.contains(&number))
}

/// The lowest register of a file that is preserved across calls of device functions.
pub fn first_kept(file: &str) -> Option<u16> {
    Callee::Device.keeps(file).map(|run| *run.start()).min()
}

include!(concat!(env!("OUT_DIR"), "/registers.rs"));
