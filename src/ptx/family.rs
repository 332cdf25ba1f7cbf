//! Parameterised names: `%r<100>` declares `%r0` to `%r99`.
//!
//! A register or variable is created only when one of its names is first used. Leading zeros are
//! ignored (`%r01` is `%r1`). All digits at the end of a name are its number, so no use ever
//! resolves to a member of `%r1<2>`.

use super::ast::{Register, SymbolId, SymbolKind, Variable};
use super::hash::NameMap;
use super::lexer::Token;
use super::parser::{Parse, Parser};
use super::scope::Name;
use super::variable::Head;
use crate::diag::Pos;

/// What each member of a declaration is.
#[derive(Clone, Debug)]
pub enum Member {
    Register(Register),
    Variable(Box<Variable>, Pos),
}

/// One parameterised declaration.
#[derive(Debug)]
struct Family {
    count: u32,
    member: Member,
}

/// The parameterised declarations of one scope.
#[derive(Default)]
pub struct Families<'a> {
    rows: NameMap<&'a str, Family>,
    made: NameMap<(&'a str, u32), Name>,
}

/// A member's name, split into the base and the number.
pub type Numbered<'a> = (&'a str, u32);

impl<'a> Families<'a> {
    /// Removes all declarations and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.made.clear();
    }

    /// Capacity of the larger of the two tables.
    pub fn room(&self) -> usize {
        self.rows.capacity().max(self.made.capacity())
    }

    /// Declares `base<count>`; returns `false` if the base is declared already.
    pub fn declare(&mut self, base: &'a str, count: u32, member: Member) -> bool {
        let fresh = !self.has(base);
        if fresh {
            self.rows.insert(base, Family { count, member });
        }
        fresh
    }

    /// Whether `base<n>` is declared.
    pub fn has(&self, base: &str) -> bool {
        self.rows.contains_key(base)
    }

    /// The declaration that covers a name.
    pub fn find(&self, name: &'a str) -> Option<(Numbered<'a>, &Member)> {
        if self.rows.is_empty() {
            return None;
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (base, number) = name.split_at(name.len() - digits);
        let family = self.rows.get(base)?;
        let number = number.parse::<u32>().ok().filter(|number| *number < family.count)?;
        Some(((base, number), &family.member))
    }

    /// Whether one of the declarations covers a name.
    pub fn declares(&self, name: &str) -> bool {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (base, number) = name.split_at(name.len() - digits);
        self.rows.get(base).is_some_and(|family| number.parse::<u32>().is_ok_and(|number| number < family.count))
    }

    /// The register or symbol created for a member, if any.
    pub fn made(&self, numbered: Numbered<'a>) -> Option<Name> {
        self.made.get(&numbered).copied()
    }

    /// Records the register or symbol created for a member.
    pub fn make(&mut self, numbered: Numbered<'a>, name: Name) {
        self.made.insert(numbered, name);
    }
}

/// The number at the end of a name, if it is written canonically: decimal, without leading zeros.
pub fn plain_number(tail: &str) -> Option<u32> {
    let plain =
        !tail.is_empty() && tail.bytes().all(|b| b.is_ascii_digit()) && (tail.len() == 1 || !tail.starts_with('0'));
    plain.then(|| tail.parse().ok()).flatten()
}

impl<'a> Parser<'a> {
    /// Parses `<count>` after the name in a declaration.
    pub fn family(&mut self, head: &Head, linkage: super::ast::Linkage, name: Token, at_module: bool) -> Parse<()> {
        self.expect_sign("<")?;
        let count = self.plain()?;
        self.expect_sign(">")?;
        let text = self.text(name);
        let member = if head.space.is_some() {
            let variable = Variable { linkage, ..self.layout(head, name)? };
            Member::Variable(Box::new(variable), name.pos)
        } else {
            self.check_register(head);
            let register = Register { name: text.into(), ty: head.ty, vector: head.vector, pos: name.pos };
            Member::Register(register)
        };
        let declared = if at_module {
            let hit = |name: &&&str| name.strip_prefix(text).and_then(plain_number).is_some_and(|i| i < count);
            match self.names.keys().filter(hit).min() {
                Some(taken) => Err(*taken),
                None => self.families.declare(text, count, member).then_some(()).ok_or(text),
            }
        } else {
            self.body.declare_family(text, count, member)
        };
        if let Err(taken) = declared {
            self.error(name.pos, format!("Duplicate definition of variable '{taken}'"));
        }
        Ok(())
    }

    /// Resolves a register or symbol of the function being read.
    pub fn find_local(&mut self, name: &'a str) -> Option<Name> {
        if let Some(found) = self.body.find(name) {
            return Some(found);
        }
        let (depth, numbered, variable, pos) = self.body.unmade(name)?;
        let symbol = self.new_symbol(&canonical(numbered), pos, SymbolKind::Variable(Box::new(variable)));
        self.body.make(depth, numbered, symbol);
        Some(Name::Symbol(symbol))
    }

    /// Resolves a symbol of the module.
    pub fn find_global(&mut self, name: &'a str) -> Option<SymbolId> {
        if let Some(found) = self.names.get(name) {
            return Some(*found);
        }
        let (numbered, member) = self.families.find(name)?;
        if let Some(Name::Symbol(symbol)) = self.families.made(numbered) {
            return Some(symbol);
        }
        let Member::Variable(variable, pos) = member.clone() else { return None };
        let symbol = self.new_symbol(&canonical(numbered), pos, SymbolKind::Variable(variable));
        self.families.make(numbered, Name::Symbol(symbol));
        self.module.globals.push(symbol);
        Some(symbol)
    }
}

/// The name without leading zeros in its number.
pub fn canonical((base, number): Numbered) -> String {
    format!("{base}{number}")
}
