# foldoc_chats.awk - turns the dictionary of computing into conversations, a JSON object a line.
#     zcat /usr/share/dictd/foldoc.dict.dz | awk -v held_out=held_out.jsonl -f foldoc_chats.awk >chats.jsonl
#
# An entry has its names at the beginning of a line, after an empty line; then indented paragraphs.
# The first name is asked for, and the first paragraph is the answer, without marks of cross
# references. Entries that only refer to others are left out. Every 40th conversation goes to the file
# held_out instead.
BEGIN {
    SHORTEST = 60 # characters of an answer
    LONGEST = 600
}

function flush() {
    gsub(/[{}]/, "", text)
    gsub(/[ \t\r]+/, " ", text)
    sub(/%%%.*/, "", name) # further names
    sub(/^ /, "", text)
    sub(/^<[^>]*> */, "", text)   # <subject>
    sub(/^\/[^\/]*\/ */, "", text) # /pronunciation/
    sub(/^\([^()]*\) */, "", text) # (the name in full, or its source)
    sub(/^1\. */, "", text)       # the first of several meanings
    sub(/^<[^>]*> */, "", text)
    sub(/ $/, "", text)
    if (name != "" && length(text) >= SHORTEST && length(text) <= LONGEST && text ~ /[.!?]$/) {
        line = "{\"messages\": [" message("user", "What is " name "?") ", " message("assistant", text) "]}"
        if (++count % 40 == 0)
            print line >held_out
        else
            print line
    }
    name = text = ""
}
function message(role, content) {
    gsub(/[\\"]/, "\\\\&", content)
    gsub(/[\001-\037]/, " ", content)
    return "{\"role\": \"" role "\", \"content\": \"" content "\"}"
}

/^00-?database/ { skipping = 1 }
/^[^ \t]/ && empty { # an entry's first name; a line that is only too long follows another
    flush()
    skipping = /^00-?database/
    name = skipping ? "" : $0
    names = 1
    done = 0
    empty = 0
    next
}
/^[^ \t]/ && names { next } # further names
/^[ \t]*$/ {
    if (text != "") done = 1
    names = 0
    empty = /^$/
    next
}
{
    names = empty = 0
    if (name != "" && !done) text = text " " $0
}
END { flush() }
