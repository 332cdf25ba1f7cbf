//! Expands the texts of helper families: parameters, texts with placeholders, prototypes, bodies.
//!
//! The result is all texts of one helper. A placeholder that names neither a parameter of the
//! family nor a slot of the prototype is an error. A body has no `ret` of its own and falls through
//! at its end, so that it can be inlined.

use std::collections::BTreeMap;

/// A parameter of a family: its name and values.
#[derive(Debug, Default)]
pub struct Parameter {
    pub name: String,
    /// The parameter whose values correspond to these one to one.
    pub of: Option<usize>,
    pub values: Vec<String>,
}

/// Parses the column `with`: `op = add max` or `unit of op = 0 1`; `-` is the empty text.
pub fn parameters(with: &[String]) -> Result<Vec<Parameter>, String> {
    let mut all: Vec<Parameter> = Vec::new();
    for text in with {
        let (head, values) = text.split_once('=').ok_or(format!("`{text}` is not NAME = VALUES"))?;
        let (name, of) = match head.trim().split_once(" of ") {
            Some((name, of)) => (name.trim(), Some(of.trim())),
            None => (head.trim(), None),
        };
        let values: Vec<String> =
            values.split_whitespace().map(|v| if v == "-" { String::new() } else { v.to_string() }).collect();
        let of = match of {
            Some(of) => Some(all.iter().position(|p| p.name == of).ok_or(format!("no parameter is called `{of}`"))?),
            None => None,
        };
        if let Some(of) = of
            && all[of].values.len() != values.len()
        {
            return Err(format!(
                "`{name}` has {} values, `{}` has {}",
                values.len(),
                all[of].name,
                all[of].values.len()
            ));
        }
        if values.is_empty() || all.iter().any(|p| p.name == name) {
            return Err(format!("`{name}` has no values, or stands twice"));
        }
        all.push(Parameter { name: name.to_string(), of, values });
    }
    Ok(all)
}

/// The value of each parameter in one helper.
pub type Values = BTreeMap<String, String>;

/// Every combination of values; the last free parameter varies fastest.
pub fn choices(parameters: &[Parameter]) -> Vec<Values> {
    let free: Vec<usize> = (0..parameters.len()).filter(|i| parameters[*i].of.is_none()).collect();
    let mut picks: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new()];
    for i in free {
        let more = |pick: &BTreeMap<usize, usize>| {
            let with = |v| pick.iter().map(|(a, b)| (*a, *b)).chain([(i, v)]).collect();
            (0..parameters[i].values.len()).map(with).collect::<Vec<_>>()
        };
        picks = picks.iter().flat_map(more).collect();
    }
    let values = |mut pick: BTreeMap<usize, usize>| {
        for (i, p) in parameters.iter().enumerate() {
            if let Some(of) = p.of {
                pick.insert(i, pick[&of]);
            }
        }
        pick.into_iter().map(|(i, v)| (parameters[i].name.clone(), parameters[i].values[v].clone())).collect()
    };
    picks.into_iter().map(values).collect()
}

/// Fills in placeholders: `{name}` in columns, `$(name)` in bodies; `$(name..)` is the list of a
/// slot's registers.
pub fn fill(text: &str, (open, close): (&str, char), values: &Values, slots: &[Slot]) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(open) {
        let (before, after) = rest.split_at(at);
        let after = &after[open.len()..];
        let (name, behind) = after.split_once(close).ok_or(format!("`{open}` without `{close}`"))?;
        out += before;
        match (values.get(name), name.strip_suffix("..").and_then(|n| slots.iter().find(|s| s.name == n))) {
            (Some(value), _) => out += value,
            (None, Some(slot)) => out += &slot.registers().join(", "),
            _ => return Err(format!("`{open}{name}{close}` names no parameter and no slot")),
        }
        rest = behind;
    }
    out += rest;
    Ok(out)
}

/// A scalar, several scalars or an array of a prototype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub ty: String,
    pub name: String,
    /// Number of values; 0: one, whose register has the name without a number.
    pub count: u16,
    /// In memory, `.param`.
    pub memory: bool,
    /// Alignment of an array, in bytes.
    pub align: u16,
}

/// Alignment of arrays unless the row gives another.
const ARRAY_ALIGN: u16 = 16;
const TYPES: [&str; 8] = ["b32", "u32", "s32", "f32", "b64", "u64", "f64", "s64"];

impl Slot {
    /// Parses `b32 x`, `b32 x*4` (x0 to x3), `b32 x[8]` (an array in memory), `b32 x[2]@8` with its
    /// alignment.
    pub fn parse(text: &str, memory: bool) -> Result<Slot, String> {
        let wrong = || format!("`{text}` is not TYPE NAME, TYPE NAME*N or TYPE NAME[N]");
        let (ty, rest) = text.split_once(' ').ok_or_else(wrong)?;
        if !TYPES.contains(&ty) {
            return Err(format!("`{ty}` is no type of a value that is passed"));
        }
        let mut slot = Slot { ty: ty.into(), name: rest.into(), count: 0, memory, align: 0 };
        let mut count = String::new();
        if let Some((name, n)) = rest.split_once('*') {
            (slot.name, count) = (name.into(), n.into());
        } else if let Some((name, n)) = rest.split_once('[') {
            let (n, align) = n.split_once(']').ok_or_else(wrong)?;
            (slot.name, slot.memory, count) = (name.into(), true, n.into());
            slot.align = if align.is_empty() { ARRAY_ALIGN } else { align[1..].parse().map_err(|_| wrong())? };
        }
        if !count.is_empty() {
            slot.count = count.parse().ok().filter(|n| (1..=32).contains(n)).ok_or_else(wrong)?;
        }
        let letters = slot.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if letters && !slot.name.is_empty() { Ok(slot) } else { Err(wrong()) }
    }

    /// Names of its registers.
    pub fn registers(&self) -> Vec<String> {
        match self.count {
            0 => vec![self.name.clone()],
            n => (0..n).map(|i| format!("{}{i}", self.name)).collect(),
        }
    }

    /// Its bytes in memory.
    fn bytes(&self) -> u16 {
        if self.ty.ends_with("64") { 8 } else { 4 }
    }

    /// Its declarations in a list of parameters.
    fn declaration(&self) -> String {
        match (self.memory, self.count) {
            (true, 0) => format!(".param .{} {}_in_memory", self.ty, self.name),
            (true, n) => format!(".param .align {} .{} {}[{n}]", self.align, self.ty, self.name),
            _ => self.registers().iter().map(|r| format!(".reg .{} {r}", self.ty)).collect::<Vec<_>>().join(", "),
        }
    }

    /// Its locations in memory, value by value.
    fn places(&self) -> Vec<(String, String)> {
        if !self.memory {
            return Vec::new();
        }
        if self.count == 0 {
            return vec![(self.name.clone(), format!("[{}_in_memory]", self.name))];
        }
        let place = |(i, r): (usize, String)| (r, format!("[{}+{}]", self.name, i as u16 * self.bytes()));
        self.registers().into_iter().enumerate().map(place).collect()
    }
}

/// Parses the slots of a column, separated by commas.
pub fn slots(text: &str, memory: bool) -> Result<Vec<Slot>, String> {
    text.split(',').map(str::trim).filter(|t| !t.is_empty()).map(|t| Slot::parse(t, memory)).collect()
}

/// The head of the function, without its linkage.
pub fn head(name: &str, returns: &[Slot], params: &[Slot]) -> String {
    let list = |slots: &[Slot]| slots.iter().map(Slot::declaration).collect::<Vec<_>>().join(", ");
    let returned = if returns.is_empty() { String::new() } else { format!("({}) ", list(returns)) };
    format!(".func {returned}{name} ({})", list(params))
}

/// The whole body: values in memory are loaded first and stored last.
pub fn body(text: &str, values: &Values, returns: &[Slot], params: &[Slot]) -> Result<String, String> {
    let all: Vec<Slot> = returns.iter().chain(params).cloned().collect();
    let mut out = String::new();
    for slot in all.iter().filter(|s| s.memory) {
        out += &format!("    .reg .{} {};\n", slot.ty, slot.registers().join(", "));
    }
    for (slot, (register, place)) in params.iter().flat_map(|s| s.places().into_iter().map(move |p| (s, p))) {
        out += &format!("    ld.param.{} {register}, {place};\n", slot.ty);
    }
    for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")) {
        let wrong = |message: String| format!("line {}: {message}", number + 1);
        let Some(line) = kept(line, values).map_err(wrong)? else { continue };
        if line.contains("ret;") {
            return Err(wrong("a body has no `ret`: it falls through at its end".into()));
        }
        let filled = fill(line, ("$(", ')'), values, &all).map_err(wrong)?;
        out += &format!("{}{filled}\n", if filled.ends_with(':') { "  " } else { "    " });
    }
    for (slot, (register, place)) in returns.iter().flat_map(|s| s.places().into_iter().map(move |p| (s, p))) {
        out += &format!("    st.param.{} {place}, {register};\n", slot.ty);
    }
    Ok(out)
}

/// A line without its condition (`?op=and|or: line`, `?op!=and: line`), or `None` if the condition
/// is false.
fn kept<'a>(line: &'a str, values: &Values) -> Result<Option<&'a str>, String> {
    let Some(rest) = line.trim_start().strip_prefix('?') else { return Ok(Some(line.trim_start())) };
    let (condition, line) = rest.split_once(": ").ok_or("a condition without `: `")?;
    for term in condition.split('&') {
        let (name, wanted) = term.split_once('=').ok_or(format!("`{term}` is no condition"))?;
        let (name, not) = name.strip_suffix('!').map_or((name, false), |name| (name, true));
        let value = values.get(name).ok_or(format!("no parameter is called `{name}`"))?;
        if wanted.split('|').any(|w| w == value) == not {
            return Ok(None);
        }
    }
    Ok(Some(line))
}
