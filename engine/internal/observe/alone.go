package observe

// noRevision marks objects that are looked at though they are no release's.
const noRevision = -1

// alone tells whether there is no release behind an attention: objects are looked at for their own sake.
func (a *attention) alone() bool { return a.said.GetAlone() }

// standAlone makes room for objects without a release.
func (m *model) standAlone(key releaseKey) {
	if m.releases[key] == nil {
		m.releases[key] = &release{key: key, records: map[int]*record{}, revision: noRevision}
	}
}

// leaveAlone forgets them.
func (m *model) leaveAlone(key releaseKey) {
	if rel := m.releases[key]; rel != nil && rel.revision == noRevision {
		m.track(rel, 0, nil, "")
		delete(m.releases, key)
	}
}

// upToDate tells whether the members are those of the newest revision.
func (rel *release) upToDate() bool {
	return rel.revision == noRevision || rel.revision == rel.newest.revision
}
