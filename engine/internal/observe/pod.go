package observe

import "fmt"

// pod is the part of a Pod that tells why it does not run.
type pod struct {
	Metadata struct {
		DeletionTimestamp string  `json:"deletionTimestamp"`
		OwnerReferences   []owner `json:"ownerReferences"`
	} `json:"metadata"`
	Status struct {
		Phase      string `json:"phase"`
		Reason     string `json:"reason"`
		Message    string `json:"message"`
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		InitContainerStatuses []container `json:"initContainerStatuses"`
		ContainerStatuses     []container `json:"containerStatuses"`
	} `json:"status"`
}

type container struct {
	Name  string `json:"name"`
	State struct {
		Waiting *struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"waiting"`
		Terminated *terminated `json:"terminated"`
	} `json:"state"`
	LastState struct {
		Terminated *terminated `json:"terminated"`
	} `json:"lastState"`
}

type terminated struct {
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
}

// trouble says in a few words why a pod does not run; empty when it does, or may be about to.
func (p *pod) trouble() string {
	if p.Metadata.DeletionTimestamp != "" || p.Status.Phase == "Succeeded" {
		return ""
	}
	for _, group := range [][]container{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, one := range group {
			if why := one.trouble(); why != "" {
				return why
			}
		}
	}
	if p.Status.Phase == "Failed" {
		if p.Status.Reason == "" {
			return said("Failed", p.Status.Message)
		}
		return said(p.Status.Reason, p.Status.Message)
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == "PodScheduled" && condition.Status == "False" && condition.Reason != "" {
			return said(condition.Reason, condition.Message)
		}
	}
	return ""
}

func (c *container) trouble() string {
	if waiting := c.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "", "ContainerCreating", "PodInitializing":
			return ""
		case "CrashLoopBackOff":
			// Its message counts seconds; how the container ended is what one wants to know.
			if last := c.LastState.Terminated; last != nil {
				return said(waiting.Reason, fmt.Sprintf("container %s %s", c.Name, last.ended()))
			}
		}
		return said(waiting.Reason, waiting.Message)
	}
	if ended := c.State.Terminated; ended != nil && ended.ExitCode != 0 {
		return said(ended.Reason, fmt.Sprintf("container %s %s", c.Name, ended.ended()))
	}
	return ""
}

func (t *terminated) ended() string {
	return said(fmt.Sprintf("ended with exit code %d", t.ExitCode), t.Message)
}
