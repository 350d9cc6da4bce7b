// Package compose puts a release's values and patches together from the documents they are written in.
//
// Values are merged by Helm's own code, patches are hashed as provider-helm hashes them: whoever moves over must
// see no difference. The rule to keep: documents may come from Secrets, so a fault names where a document came
// from, which line, and what is wrong in our words; it never repeats a piece of the document.
package compose
