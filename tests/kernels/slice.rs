//! Extracts one kernel of a module with everything it refers to.
//!
//! The result is the text of the entry, of the functions and variables that it mentions directly or
//! indirectly, and of the module-wide directives. Every item is copied unchanged; what the kernel
//! cannot reach cannot prevent its compilation.

use std::collections::HashSet;

/// The slice of `text` for `kernel`; the whole text if there is no such entry.
pub fn slice(text: &str, kernel: &str) -> String {
    let items = items(text);
    let mut kept: Vec<bool> = items.iter().map(|item| item.name.is_none()).collect();
    let Some(start) = items.iter().position(|i| i.entry && i.body && i.name == Some(kernel)) else {
        return text.into();
    };
    let mut mentioned: HashSet<&str> = HashSet::new();
    let mut queue = vec![start];
    while let Some(i) = queue.pop() {
        if std::mem::replace(&mut kept[i], true) {
            continue;
        }
        mentioned.extend(words(items[i].text));
        let wanted = |j: &usize| !kept[*j] && !items[*j].entry && items[*j].name.is_some_and(|n| mentioned.contains(n));
        queue.extend((0..items.len()).filter(wanted));
    }
    items.iter().zip(kept).filter(|(_, kept)| *kept).map(|(item, _)| item.text).collect()
}

struct Item<'a> {
    text: &'a str,
    /// The name that it declares; `None` for a module-wide directive.
    name: Option<&'a str>,
    entry: bool,
    body: bool,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

/// The top-level items of a module, in order; together they are the whole text.
fn items(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = item_end(rest);
        let item = &rest[..end];
        let code = strip(item);
        let function = code.contains(".entry") || code.contains(".func");
        let variable = [".global", ".const", ".shared"].iter().any(|space| code.contains(space));
        let name = if function || variable { declared(item, function) } else { None };
        items.push(Item { text: item, name, entry: code.contains(".entry"), body: code.contains('{') });
        rest = &rest[end..];
    }
    items
}

/// End of the item at the start of the text.
fn item_end(text: &str) -> usize {
    let (mut depth, mut at) = (0i32, 0);
    let bytes = text.as_bytes();
    let mut started = None;
    while at < bytes.len() {
        if let Some(end) = blank(text, at) {
            at = end;
            continue;
        }
        if started.is_none() && bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let start = *started.get_or_insert(at);
        match bytes[at] {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                let head = &text[start..at];
                let block = [".entry", ".func", ".section"].iter().any(|word| head.contains(word));
                if depth == 0 && block {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            b'\n' if depth == 0 && line_directive(&text[start..at]) => return at + 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

fn line_directive(text: &str) -> bool {
    [".version", ".target", ".address_size", ".file"].iter().any(|word| text.starts_with(word))
}

/// End of the comment or string, or of the blanks before an item, that starts at `at`.
fn blank(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let to = |pattern: &str, from: usize| rest[from..].find(pattern).map_or(text.len(), |n| at + from + n);
    if rest.starts_with("//") {
        Some(to("\n", 2))
    } else if rest.starts_with("/*") {
        Some((to("*/", 2) + 2).min(text.len()))
    } else if rest.starts_with('"') {
        Some((to("\"", 1) + 1).min(text.len()))
    } else {
        None
    }
}

/// The code of an item without comments.
fn strip(item: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < item.len() {
        match blank(item, at) {
            Some(end) => at = end,
            None => {
                out.push(item.as_bytes()[at] as char);
                at += 1;
            }
        }
    }
    out
}

/// The name that an item declares: the last one before its parameters, size, value or end.
fn declared(item: &str, function: bool) -> Option<&str> {
    let start = if function {
        [".entry", ".func"].iter().find_map(|word| item.find(word).map(|at| at + word.len()))?
    } else {
        [".global", ".const", ".shared"].iter().find_map(|word| item.find(word))?
    };
    let mut rest = &item[start..];
    if function && rest.trim_start().starts_with('(') {
        rest = &rest[rest.find(')')? + 1..];
    }
    let end = rest.find(if function { ['(', '{', ';'] } else { ['[', '=', ';'] }).unwrap_or(rest.len());
    words(&rest[..end]).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_brings_what_it_mentions() {
        let text = "// .entry x {\n.version 9.0\n.target sm_75\n.global .u64 tab[1] = {f};\n.const .b8 c[4];\n\
            .func (.param .b32 r) f(.param .b32 a);\n.func g() { ret; }\n.visible .entry a(.param .u64 p)\n{ tab; }\n\
            .visible .entry b() { call g; }\n.func (.param .b32 r) f(.param .b32 a) { /* } */ ret; }\n";
        let a = slice(text, "a");
        assert!(a.starts_with("// .entry x {\n.version 9.0\n.target sm_75\n"), "{a}");
        assert!(a.contains("tab[1]") && a.contains("entry a") && a.matches(" f(").count() == 2, "{a}");
        assert!(!a.contains(" g()") && !a.contains("entry b") && !a.contains("c[4]"), "{a}");
        let b = slice(text, "b");
        assert!(b.contains(" g()") && b.contains("entry b") && !b.contains("tab"), "{b}");
    }
}
