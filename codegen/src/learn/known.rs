//! Looks up what the tables already contain about a word: the rows that decode it, sets equal to a
//! learned one, role names. Nothing is proposed from the tables that the word's bits do not also
//! show.

use super::modifier::Modifier;
use crate::model::Model;
use crate::model::encoding::Form;
use crate::model::form_syntax::{Bits, GroupedArg, constant_bits};
use crate::source::{At, Sources};

/// A target of the tables by its number (`90a`).
pub struct Target {
    pub index: usize,
    pub generation: usize,
    pub ur_bits: u32,
}

/// The target that `-arch=sm_NUMBER` names. Fails if there is none, or it has no encoder.
pub fn target(model: &Model, sm: &str) -> Result<Target, String> {
    let name = format!("sm_{sm}");
    let index = model.targets.targets.iter().position(|t| t.name == name);
    let index = index.ok_or_else(|| format!("no target is called `{name}`"))?;
    let generation = model.targets.targets[index].generation.as_deref().and_then(|g| model.targets.generation(g));
    let generation = generation.ok_or_else(|| format!("`{name}` has no generation in targets.ron"))?;
    Ok(Target { index, generation, ur_bits: model.targets.generations[generation].ur_bits })
}

/// `tables/FILE:LINE` of a row.
pub fn place(sources: &Sources, at: At) -> String {
    let line = sources.line_col(at.file, at.start).0;
    format!("tables/{}:{line}", sources.files[at.file.0 as usize].path)
}

/// The forms that decode a word on a target.
pub fn decoders<'m>(model: &'m Model, target: &Target, word: u128) -> Vec<&'m Form> {
    let fits = |form: &&Form| {
        let has = form.feature.is_none_or(|f| model.targets.has[target.index][f]);
        let coded = form.mods.iter().filter(|m| m.only.is_none()).all(|m| {
            let codes = &model.ori.sets[m.set].codes;
            m.bits.as_ref().is_none_or(|b| codes.iter().any(|c| b.place(c.0.into()) == word & b.mask()))
        });
        has && coded && form.generations.contains(&target.generation) && word & form.fixed.0 == form.fixed.1
    };
    model.encoding.forms.iter().filter(fits).collect()
}

/// Sets of the tables equal to a learned modifier; sets that `forms` use at the same bits come
/// first.
pub fn equal_sets(model: &Model, forms: &[&Form], modifier: &Modifier) -> Vec<usize> {
    let mut list: Vec<usize> =
        (0..model.ori.sets.len()).filter(|s| wrong_codes(model, *s, modifier) == Some(0)).collect();
    list.sort_by_key(|s| !used(forms, modifier, *s));
    list
}

/// Whether one of the forms has the set at the modifier's bits.
fn used(forms: &[&Form], modifier: &Modifier, set: usize) -> bool {
    let same = |bits: &Bits| bits.mask() == modifier.mask();
    forms.iter().any(|f| f.mods.iter().any(|m| m.set == set && m.bits.as_ref().is_some_and(same)))
}

/// Number of codes in which a set and a modifier differ; `None` if no code prints the same in both.
fn wrong_codes(model: &Model, set: usize, modifier: &Modifier) -> Option<usize> {
    let set = &model.ori.sets[set];
    let told = |code: u64| set.codes.iter().position(|c| c.0 == code).map(|i| set.texts[i].as_str());
    let seen = |code: u64| modifier.values.iter().find(|v| v.0 == code).map(|v| v.1.as_str());
    let mut codes: Vec<u64> = set.codes.iter().map(|c| c.0).chain(modifier.values.iter().map(|v| v.0)).collect();
    codes.sort_unstable();
    codes.dedup();
    let right = codes.iter().filter(|c| told(**c) == seen(**c)).count();
    (right > 0).then(|| codes.len() - right)
}

/// The closest set of the forms that decode the word, with its differences from a learned modifier.
pub fn nearest(model: &Model, forms: &[&Form], modifier: &Modifier) -> Option<String> {
    let candidates = (0..model.ori.sets.len()).filter(|s| used(forms, modifier, *s));
    let (wrong, set) = candidates.filter_map(|s| Some((wrong_codes(model, s, modifier)?, s))).min()?;
    let set = &model.ori.sets[set];
    let told = |code: u64| set.codes.iter().position(|c| c.0 == code).map(|i| set.texts[i].clone());
    let missing: Vec<String> = modifier
        .values
        .iter()
        .filter(|v| told(v.0).as_ref() != Some(&v.1))
        .map(|v| format!("{}={}", v.0, if v.1.is_empty() { "-" } else { &v.1 }))
        .collect();
    let gone = set.codes.iter().filter(|c| modifier.values.iter().all(|v| v.0 != c.0)).map(|c| format!("{}", c.0));
    Some(format!(
        "set `{}` of the rows at these bits differs in {wrong} codes; nvdisasm has besides: {}; nvdisasm does not have: {}",
        set.name,
        missing.join(" "),
        gone.collect::<Vec<_>>().join(" ")
    ))
}

/// A modifier of the forms with a single value, in some of the bits `fixed`, that prints `suffix`:
/// its word and bits.
pub fn fixed_modifier(
    model: &Model,
    forms: &[&Form],
    suffix: &str,
    operand: bool,
    fixed: u128,
) -> Option<(String, u128)> {
    forms.iter().flat_map(|f| &f.mods).find_map(|m| {
        let (only, bits) = (m.only?, m.bits.as_ref()?);
        let set = &model.ori.sets[m.set];
        let good = m.arg.is_some() == operand && set.texts[only] == suffix && bits.mask() & !fixed == 0;
        let value = &model.ori.kinds[set.kind].values[set.codes[only].1];
        good.then(|| (format!("{}={value}@{}", set.name, ranges(bits)), bits.mask()))
    })
}

/// Prints `LO..HI` parts joined by `+`, and the scale.
pub fn ranges(bits: &Bits) -> String {
    let part = |(lo, len): &(u8, u8)| if *len == 1 { lo.to_string() } else { format!("{lo}..{}", lo + len - 1) };
    let scale = if bits.shift == 0 { String::new() } else { format!("*{}", 1u64 << bits.shift) };
    format!("{}{scale}", bits.pieces.iter().map(part).collect::<Vec<_>>().join("+"))
}

/// Assigns role names for one row.
pub struct Roles<'m> {
    model: &'m Model,
    forms: Vec<&'m Form>,
    op: Option<usize>,
    taken: Vec<String>,
    /// Role of the constant whose bank was named last, until its offset is reached.
    bank: Option<String>,
    /// Names that came from neither a row nor the opcode.
    pub invented: Vec<String>,
}

impl<'m> Roles<'m> {
    /// No roles assigned yet; `forms` decode the word, `op` is its opcode.
    pub fn new(model: &'m Model, forms: Vec<&'m Form>, op: Option<usize>) -> Self {
        Roles { model, forms, op, taken: Vec::new(), bank: None, invented: Vec::new() }
    }

    /// A role for a field of a kind: the name that a decoding row gives these bits, otherwise the
    /// opcode's next role of the class, otherwise a new name.
    pub fn name(&mut self, kind: &str, bits: u128) -> String {
        let own = |arg: &GroupedArg| {
            let constant = constant_bits(&arg.kind).map_or(0, |(x, y)| x.mask() | y.mask());
            arg.bits.as_ref().map_or(0, Bits::mask) | constant
        };
        let at = |form: &&'m Form| form.args.iter().find(|a| own(&a.arg) & bits != 0);
        let known = self.forms.iter().find_map(at).map(|a| a.arg.role.clone());
        let classes = match kind {
            "P" | "UP" => "p",
            "B" | "SB" => "b",
            "SR" => "s",
            "L" => "l",
            "U" => "ur",
            "I" | "S" | "SD" | "SU" | "N" | "M" => "ir",
            _ => "r",
        };
        let free = |r: &&crate::model::ori::RoleSpec, class: char| r.class == class && !self.taken.contains(&r.name);
        let next = self.op.and_then(|op| {
            let roles = &self.model.ori.ops[op].roles;
            classes.chars().find_map(|c| roles.iter().find(|r| free(r, c))).map(|r| r.name.clone())
        });
        // Bank and offset of a constant form one operand.
        let bank = self.bank.take_if(|_| kind == "O");
        let name = bank.or(known.filter(|k| !self.taken.contains(k))).or(next).unwrap_or_else(|| {
            let name = format!("{}{}", kind.to_lowercase(), self.invented.len());
            self.invented.push(name.clone());
            name
        });
        if kind == "K" {
            self.bank = Some(name.clone());
        }
        self.taken.push(name.clone());
        name
    }
}
