package canal
type schemaTracker struct{}
