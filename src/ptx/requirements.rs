//! Checks the file's `.version` and `.target` against what instructions, modifiers and directives
//! require.

use super::parser::Parser;
use crate::diag::Pos;
use crate::tables::ptx::{DIRECTIVES, DirectiveInfo, Needs, SpecialRegister};

/// Something that requires a version or a target.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'s> {
    Directive(&'s str),
    Special(SpecialRegister),
    /// An instruction or part of one, by the name for the message.
    Feature(&'s str, Needs),
    /// A modifier with its dot.
    Modifier(&'s str, Needs),
    /// In the words of the message.
    Named(&'s str, Needs),
}

impl Parser<'_> {
    /// Reports a subject that the file's version or target does not have.
    pub fn need(&mut self, subject: Subject, pos: Pos) {
        let mut refused = self.refused;
        let (what, needs) = match subject {
            Subject::Directive(name) => match DIRECTIVES.get(name) {
                Some(info) => (format!("Feature '{name}'"), info.needs),
                None => return,
            },
            Subject::Special(special) => {
                let needs = special.info().needs;
                refused |= self.refuses_special(special, pos);
                if self.has(needs) {
                    return;
                }
                let name = special.name().split('.').next().unwrap_or_default();
                (format!("Feature '%{name}'"), needs)
            }
            Subject::Feature(name, needs) => (format!("Feature '{name}'"), needs),
            Subject::Modifier(text, needs) => (format!("Modifier '{text}'"), needs),
            Subject::Named(words, needs) => (words.to_string(), needs),
        };
        let (major, minor) = needs.ptx;
        if self.module.version < needs.ptx {
            self.error(pos, format!("{what} requires PTX ISA .version {major}.{minor} or later"));
        }
        if !refused && self.target_row.is_some_and(|t| t.sm < needs.sm) {
            self.error(pos, format!("{what} requires .target sm_{} or higher", needs.sm));
        }
    }

    /// Whether the file's version and target meet the requirements.
    pub fn has(&self, needs: Needs) -> bool {
        self.module.version >= needs.ptx && self.target_row.is_none_or(|t| t.sm >= needs.sm)
    }
}

/// The first word of a pragma's text and its requirements; `None` if the pragma is unknown. The
/// words after it are its argument.
pub fn pragma_name(text: &str) -> Option<(&str, &'static DirectiveInfo)> {
    let (name, argument) = text.split_once(' ').map_or((text, None), |(name, argument)| (name, Some(argument)));
    let info = DIRECTIVES.get(name).filter(|info| info.pragma)?;
    argument.is_none_or(|argument| !argument.trim().is_empty()).then_some((name, info))
}
